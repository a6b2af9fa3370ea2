"""The figures of reports: what each shows, and how it is drawn (by matplotlib) as SVG and PNG.

Importing a module of this package imports matplotlib, which takes a second and some 30 MB: only child processes do.
"""
