"""Rendering by Blender's Cycles; no other module needs ``bpy``."""
