"""What Kit loads: the extension and its window. The only code that imports Kit's modules when it is imported."""

from nimbus.datagen.kit.extension import NimbusExtension

__all__ = ["NimbusExtension"]
