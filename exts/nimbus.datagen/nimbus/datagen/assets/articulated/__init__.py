"""Articulated assets: conversion of URDF and MJCF joints to parts with limits, handles and contact geometry."""
