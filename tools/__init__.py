"""Tools for the development of Nimbus."""
