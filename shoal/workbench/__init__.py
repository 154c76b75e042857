"""The workbench: pages in the browser, served by this machine, for all steps from a table to a release.

Nothing imports this package. It calls only the public interface of ``shoal``, so a script can do what a page does.
"""
