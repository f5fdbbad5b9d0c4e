"""Articulated assets: conversion of URDF and MJCF joints to moving parts with limits, handles and contact geometry."""
