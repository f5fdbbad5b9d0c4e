"""Extension for Kit and its window; the only code that imports Kit's modules at import."""

from nimbus.datagen.kit.extension import NimbusExtension

__all__ = ["NimbusExtension"]
