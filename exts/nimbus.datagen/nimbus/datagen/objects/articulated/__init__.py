"""Articulated objects: furniture, appliances, controls and plumbing.

A family is a model of its settings with a method ``assemble``; :data:`AnyArticulated` lists them.
"""

from nimbus.datagen.objects.articulated.controls import Button, Knob, Switch
from nimbus.datagen.objects.articulated.conveyor import Conveyor
from nimbus.datagen.objects.articulated.cupboard import Cupboard
from nimbus.datagen.objects.articulated.drawer_cabinet import DrawerCabinet
from nimbus.datagen.objects.articulated.laptop import Laptop
from nimbus.datagen.objects.articulated.lidded_box import LiddedBox
from nimbus.datagen.objects.articulated.microwave import Microwave
from nimbus.datagen.objects.articulated.plumbing import Faucet, Valve

AnyArticulated = (
    DrawerCabinet | Cupboard | Microwave | Laptop | LiddedBox | Knob | Valve | Button | Faucet | Switch | Conveyor
)

__all__ = ["AnyArticulated"]
