"""Parts of the documentation site that are generated when it is built."""
