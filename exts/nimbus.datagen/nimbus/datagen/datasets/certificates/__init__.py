"""Certificates: records of the checks of a dataset, their scope and figures, stored with it."""
