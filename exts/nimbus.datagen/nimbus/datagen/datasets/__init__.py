"""Finished datasets: export, training readers, conversion, filters, quality, certificates."""
