"""The development cluster and the images: standard library only, so that it runs before anything is installed."""
