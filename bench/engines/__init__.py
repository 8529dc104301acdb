"""Programs that run other stream engines, each in an environment of its own: what one needs, another refuses."""
