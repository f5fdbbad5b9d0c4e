"""Registry of the furniture, fixtures and objects of rooms."""

from __future__ import annotations

from collections.abc import Mapping

from nimbus.datagen.rooms.building_parts import BUILDING
from nimbus.datagen.rooms.furnishing import FurnishingKind, by_name
from nimbus.datagen.rooms.kitchen_parts import KITCHEN
from nimbus.datagen.rooms.office_parts import OFFICE
from nimbus.datagen.rooms.shop_parts import SHOP
from nimbus.datagen.rooms.small_parts import SMALL
from nimbus.datagen.rooms.storage_parts import STORAGE
from nimbus.datagen.rooms.workshop_parts import WORKSHOP

KINDS: Mapping[str, FurnishingKind] = by_name((*BUILDING, *KITCHEN, *OFFICE, *STORAGE, *WORKSHOP, *SHOP, *SMALL))
"""Kinds by name."""
