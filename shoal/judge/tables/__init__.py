"""The judge of tables by themselves: privacy counted again from what is published."""
