"""Figures of the server for Prometheus."""
import prometheus_client as prometheus

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
_ITEMS = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """Counts of one server, in a registry of their own."""

    def __init__(self):
        self.registry = prometheus.CollectorRegistry()
        of = {"labelnames": ("model",), "registry": self.registry}
        self.requests = prometheus.Counter("cortado_requests", "Requests, by the HTTP status of the answer",
                                           ("model", "status"), registry=self.registry)
        self.items = prometheus.Counter("cortado_items", "Items that were computed", **of)
        self.batch = prometheus.Histogram("cortado_batch_items", "Items that were computed together", buckets=_ITEMS, **of)
        self.waited = prometheus.Histogram("cortado_queue_seconds", "Time from a request's arrival to its computation",
                                           buckets=_SECONDS, **of)
        self.computed = prometheus.Histogram("cortado_compute_seconds", "Time to compute a batch", buckets=_SECONDS, **of)
        self.waiting = prometheus.Gauge("cortado_queue_requests", "Requests that wait", **of)

    def watch(self, name, batcher):
        """Shows how many requests wait for a model."""
        self.waiting.labels(name).set_function(lambda: len(batcher))

    def observer(self, name):
        """The function that a Batcher calls after each batch."""
        items, batch = self.items.labels(name), self.batch.labels(name)
        waited, computed = self.waited.labels(name), self.computed.labels(name)

        def observe(count, waits, seconds):
            items.inc(count)
            batch.observe(count)
            computed.observe(seconds)
            for wait in waits:
                waited.observe(wait)

        return observe

    def text(self):
        return prometheus.generate_latest(self.registry)
