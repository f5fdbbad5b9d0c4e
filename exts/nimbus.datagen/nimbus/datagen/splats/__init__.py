"""Gaussian splats: files of scenes made of them, their pictures, and geometry that stands for them."""
