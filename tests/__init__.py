"""Tests of Nimbus and their support."""
