"""Tools for finished datasets: export, training readers, conversion, filters, quality checks, certificates."""
