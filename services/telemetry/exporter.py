"""Metrics for Prometheus, and the server that shows them with /healthz and /readyz. Loads aiohttp and
prometheus_client: import it only where metrics are served. The rest of the program gets functions as arguments.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import cast

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest
from prometheus_client.registry import Collector

from model.messages import AuthorType, Destination
from model.outcomes import Ignored, Outcome, Result, traits_of
from model.steps import DECISIONS
from services.telemetry.connections import BACKLOG, Connections, LoopShare, limit_log_lines

CALL_SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120, 240)
"""Bounds for a call to an LLM, from a cache hit nearby to a job that waits in a queue."""
GRACE_SECONDS = 1.0
"""The seconds that a scrape may take while the server closes."""
KEEP_ALIVE_SECONDS = 15.0
LARGEST_FORM = 64 * 1024
"""The largest body of a request, in bytes."""
CONNECTIONS = web.AppKey("connections", Connections)
"""The connections of an application that `serve_metrics` serves."""
SOURCE_COUNTS = (0, 1, 2, 3, 4, 5, 7, 10)

OPEN_BATCHES = "quiet_window"
"""The operator whose items in flight are the open batches."""


class Metrics:
    """The metrics of one run, in a registry of its own, so that two runs in one process do not mix."""

    def __init__(self, role: str = "") -> None:
        """`role`: of this process among several; it becomes a label of all metrics. Empty: there is one process."""
        self._registry = all_ = CollectorRegistry()
        self._requests = Counter("ai_requests", "Questions by what became of them", ["result"], registry=all_)
        self._drafts = Counter(
            "ai_drafts", "Answers that waited for approval, by how they ended", ["end"], registry=all_
        )
        counted = [(name, metric) for name, each in DECISIONS.items() if (metric := each.metric) is not None]
        self._yes_or_no = {
            (name, metric.field): Counter(metric.name, metric.help, [metric.field], registry=all_)
            for name, metric in counted
            if not metric.counts_values
        }
        self._sizes = {
            (name, metric.field): Histogram(metric.name, metric.help, buckets=SOURCE_COUNTS, registry=all_)
            for name, metric in counted
            if metric.counts_values
        }
        self._routing = Counter("adapter_routing", "Parts by where routing sent them", ["handler"], registry=all_)
        self._captures = Counter("qa_capture", "Captures by what became of them", ["result"], registry=all_)
        self._fetches = Counter("kb_web_fetch", "Web pages asked for, by the answer", ["result"], registry=all_)
        self._call = Histogram(
            "llm_call_seconds", "Calls to an LLM, retries included", ["step"], buckets=CALL_SECONDS, registry=all_
        )
        self._tokens = Counter("llm_tokens", "Tokens as counted by the endpoint", ["step", "kind"], registry=all_)
        self._in_flight = Gauge("operator_in_flight", "Items that an operator works on", ["operator"], registry=all_)
        self._alerts = Gauge("millrace_alerts_open", "Open incidents: 1 while there is one", ["kind"], registry=all_)
        self._open = Gauge("open_batches", "Batches that wait for their author to fall quiet", registry=all_)
        if role:
            self._registry = CollectorRegistry()
            self._registry.register(_Labelled(all_, {"role": role}))
            self._partitions = Gauge("millrace_partitions", "Partitions that this process owns", registry=all_)
            self._of_partition = Gauge(
                "millrace_partition_in_flight", "Messages on their way, by partition", ["partition"], registry=all_
            )

    def count_result(self, result: Result) -> None:
        if isinstance(result, Outcome):
            self._outcome(result)
        elif isinstance(result, Ignored) and result.part_number is not None:
            self._routing.labels(Destination.NOTHING).inc()

    def gauge(self, operator: str, count: int) -> None:
        """Set the number of items that an operator works on (`dataflow.metering.Gauge`)."""
        if operator == OPEN_BATCHES:
            self._open.set(count)
        else:
            self._in_flight.labels(operator).set(count)

    def observe_call(self, step: str, seconds: float) -> None:
        """Count a call to an LLM (`services.llm.structured.StructuredLLM`)."""
        self._call.labels(step).observe(seconds)

    def count_fetch(self, result: str) -> None:
        """Count a request for a web page (`assembly.sources.source_kinds`)."""
        self._fetches.labels(result).inc()

    def tokens(self, step: str, kind: str, count: int) -> None:
        """Count tokens (`services.llm.ObserveTokens`)."""
        self._tokens.labels(step, kind).inc(count)

    def incidents(self, is_open: Mapping[str, bool]) -> None:
        """Set which kinds of incidents are open, and forget the others."""
        self._alerts.clear()
        for kind, value in is_open.items():
            self._alerts.labels(kind).set(value)

    def set_partitions(self, partitions: Mapping[int, int]) -> None:
        """Set the partitions that this process owns, each with its messages in flight. For a process with a role."""
        self._partitions.set(len(partitions))
        self._of_partition.clear()
        for partition, count in partitions.items():
            self._of_partition.labels(str(partition)).set(count)

    def render(self) -> bytes:
        """Render all metrics in Prometheus' text format."""
        return generate_latest(self._registry)

    def _outcome(self, end: Outcome) -> None:
        if end.ends_draft:
            self._drafts.labels(cast("dict[str, str]", end.decisions["approve"])["end"]).inc()
            return
        if end.part.author_type is AuthorType.TEAM_MEMBER:
            self._routing.labels(Destination.CAPTURE).inc()
            self._captures.labels(end.result).inc()
            return
        kept_out = traits_of(end.reason).is_not_routed
        self._routing.labels(Destination.NOTHING if kept_out else Destination.ANSWER).inc()
        self._requests.labels(end.result).inc()
        self._decisions(end.decisions)

    def _decisions(self, decisions: dict[str, object]) -> None:
        """Count the decisions of the steps that were reached."""

        def decided(name: str) -> dict[str, object]:
            return cast("dict[str, object]", decisions.get(name, {}))

        for (name, field), counter in self._yes_or_no.items():
            if field in decided(name):
                counter.labels("true" if decided(name)[field] else "false").inc()
        for (name, field), histogram in self._sizes.items():
            if field in decided(name):
                histogram.observe(len(cast("list[str]", decided(name)[field])))


class _Labelled(Collector):
    """Adds constant labels to everything in a registry."""

    def __init__(self, registry: CollectorRegistry, labels: Mapping[str, str]) -> None:
        self._registry, self._labels = registry, labels

    def collect(self) -> Iterable[Metric]:
        for metric in self._registry.collect():
            metric.samples = [each._replace(labels={**self._labels, **each.labels}) for each in metric.samples]
            yield metric


class CannotListen(Exception):
    """The address cannot be used: one readable line that names the keys."""


@asynccontextmanager
async def serve_metrics(
    host: str,
    port: int,
    health: Callable[[], str | None],
    render: Callable[[], bytes],
    *,
    ready: Callable[[], str | None] | None = None,
    add_pages: Callable[[web.Application], object] | None = None,
    pace: float = 1.0,
) -> AsyncGenerator[int]:
    """Serve while the block runs. Yields the port, which is a free one if `port` is 0.

    `health` says in a few words what is wrong, or None: then `/healthz` answers 200 and `ok`, else 503 and the words.
    `ready` says for `/readyz` in the same way why it is not ready; None: it is ready whenever it is healthy. `render`
    makes the content of `/metrics`; `add_pages` adds other pages. `pace`: seconds of the loop in a real one.

    Raises:
        CannotListen: the port is taken, or the address is not one of this machine.
    """
    connections = Connections("metrics.port", pace=pace)
    application = _limited_application(connections, LoopShare(pace))
    _add_metrics(application, health, render, ready)
    if add_pages is not None:
        add_pages(application)
    limit_log_lines("aiohttp.server", "asyncio")
    runner = web.AppRunner(
        application,
        access_log=None,
        shutdown_timeout=GRACE_SECONDS,
        keepalive_timeout=KEEP_ALIVE_SECONDS * pace,
        # A body in a few bytes becomes megabytes, and the loop does nothing else meanwhile.
        auto_decompress=False,
        # Once a request is answered, nobody reads on in its body.
        lingering_time=0.0,
    )
    await runner.setup()
    try:
        try:
            protocol = connections.limit(cast("web.Server", runner.server))
            server = await asyncio.get_running_loop().create_server(protocol, host, port, backlog=BACKLOG)
        except OSError as error:
            raise CannotListen(
                f"metrics.port: cannot listen on {host}:{port} ({_reason(error)}); "
                "choose another metrics.port or metrics.host, or 0 to switch it off"
            ) from None
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            connections.close()
    finally:
        await runner.cleanup()


def _limited_application(connections: Connections, loop_share: LoopShare) -> web.Application:
    """Return an application without pages, whose requests take turns, and are counted by the connections."""

    @web.middleware
    async def limited(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if "Transfer-Encoding" in request.headers:  # no browser cuts a form into chunks, of which each byte may be one
            return web.Response(text="Send it with a Content-Length.\n", status=411)
        if request.can_read_body:  # its body may never end; a handler that reads it calls `on_request_read`
            connections.on_request(peer_of(request))
        else:
            connections.on_request_read(peer_of(request))
        if not await loop_share.wait(lambda: request.transport is None):
            return web.Response()  # to nobody
        answer = await loop_share.counted(handler(request))
        connections.on_request_read(peer_of(request))
        return answer

    application = web.Application(middlewares=[limited], client_max_size=LARGEST_FORM)
    application[CONNECTIONS] = connections
    return application


def _add_metrics(
    application: web.Application,
    health: Callable[[], str | None],
    render: Callable[[], bytes],
    ready: Callable[[], str | None] | None,
) -> None:
    """Add `/metrics`, `/healthz` and `/readyz`. The functions are as for `serve_metrics`."""

    async def metrics(_request: web.Request) -> web.Response:
        return web.Response(body=render(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def healthz(_request: web.Request) -> web.Response:
        return _health_response(health())

    async def readyz(_request: web.Request) -> web.Response:
        return _health_response(health() or (None if ready is None else ready()))

    application.add_routes([web.get("/metrics", metrics), web.get("/healthz", healthz), web.get("/readyz", readyz)])


def peer_of(request: web.BaseRequest) -> object:
    return None if request.transport is None else request.transport.get_extra_info("peername")


def _health_response(trouble: str | None) -> web.Response:
    return web.Response(text=f"{trouble or 'ok'}\n", status=200 if trouble is None else 503)


def _reason(error: OSError) -> str:
    if error.errno is None:  # asyncio's own error, from Python 3.13 on, if no address could be used
        return "this machine has no such address"
    # asyncio puts a whole sentence with the address in front of the system's message.
    text = (error.strerror or str(error)).rpartition("] ")[2]
    return text.rpartition("): ")[2]
