"""Extension for Kit and its window; only this package imports Kit's modules at the top of its files."""

from nimbus.datagen.kit.extension import NimbusExtension

__all__ = ["NimbusExtension"]
