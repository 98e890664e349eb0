"""Tests of the client against a real service with a local site of 2 PEs.

TestPythonClient of cmd/berth starts the service and says in the environment where it is.
"""

from __future__ import annotations

import dataclasses
import http.server
import json
import os
import subprocess
import tempfile
import threading
import unittest
import urllib.request
import warnings
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Dict, List, Tuple
from unittest import mock
from urllib.parse import urlsplit

import berth
from berth import BerthError, Client, Invalid, Request, TaskToRun, WorkflowRequest
from berth.forms import decode
from relay import Relay

SERVER = os.environ["BERTH_SERVER"]
USER = os.environ["BERTH_USER"]
OPERATOR = os.environ["BERTH_OPERATOR_FILE"]
SOCKET = os.environ["BERTH_SOCKET"]
# What waits for an event that does not come is ended, so that the test fails instead of hanging.
LONGEST = 60


def soon(**delta: float) -> datetime:
    return datetime.now(timezone.utc) + timedelta(**delta)


def far(hours: int) -> Request:
    """Return a request far ahead, at an hour that no other test uses."""
    ready = soon(days=30, hours=hours)
    return Request(npe=1, duration="10m", ready=ready, deadline=ready + timedelta(minutes=10))


def impostor(test: unittest.TestCase, status: int, headers: Dict[str, str], body: bytes) -> Tuple[str, List[str]]:
    """Start a server that answers everything alike; return its URL and what it is asked for."""
    asked: List[str] = []

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    test.addCleanup(server.server_close)
    test.addCleanup(server.shutdown)
    return "http://127.0.0.1:%d" % server.server_port, asked


class Case(unittest.TestCase):
    def setUp(self) -> None:
        self.client = Client()

    def relayed(self, **how: object) -> Tuple[Relay, Client]:
        at = urlsplit(SERVER)
        relay = Relay((str(at.hostname), int(at.port or 0)))
        self.addCleanup(relay.close)
        return relay, Client(relay.url, os.environ["BERTH_TOKEN"], **how)  # type: ignore[arg-type]

    def until(self, events: berth.Events, what: str, id: str) -> berth.Event:
        timer = threading.Timer(LONGEST, events.close)
        timer.start()
        self.addCleanup(timer.cancel)
        for event in events:
            of = event.workflow or event.reservation
            if event.what == what and of is not None and of.id == id:
                timer.cancel()
                return event
        raise AssertionError(f"no {what} of {id} within {LONGEST} s")


class Forms(Case):
    """The classes have the fields of the OpenAPI document, all of them and no others."""

    @classmethod
    def setUpClass(cls) -> None:
        with urllib.request.urlopen(SERVER + "/openapi.json") as answer:
            cls.document = json.load(answer)

    def same(self, kind: type, schema: dict) -> None:
        with self.subTest(kind.__name__):
            self.assertEqual(sorted(f.name.rstrip("_") for f in dataclasses.fields(kind)), sorted(schema["properties"]))

    def test_answers(self) -> None:
        schemas = self.document["components"]["schemas"]
        names = """Answer Chance Delivered Event Exceeded Happening History Materialised Me Nearest Occurrence Offer Outage Place Refusal Reservation
            Series SeriesAnswer Share TaskReport Transfer Workflow WorkflowAnswer WorkflowEvent WorkflowOffer WorkflowStep"""
        for name in names.split():
            self.same(getattr(berth, name), schemas[name])
        self.same(berth.Variant, schemas["BerthVariant"])

    def test_a_keyword_is_read(self) -> None:
        told = decode(berth.Happening, {"what": "moved", "outages": [{"npe": 2, "nodes": ["n07"], "from": "2026-11-25T12:00:00Z"}]})
        self.assertEqual(told.outages[0].nodes, ["n07"])
        self.assertEqual(told.outages[0].from_, datetime(2026, 11, 25, 12, tzinfo=timezone.utc))

    def test_requests(self) -> None:
        def body(path: str) -> dict:
            return self.document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]

        request, workflow = body("/v1/requests"), body("/v1/workflows")
        self.same(Request, request)
        self.same(berth.Part, request["properties"]["parts"]["items"])
        self.same(berth.Variant, request["properties"]["variants"]["items"])
        self.same(berth.Task, body("/v1/reservations/{id}/run"))
        self.same(WorkflowRequest, workflow)
        self.same(berth.SeriesRequest, body("/v1/series"))
        self.same(TaskToRun, workflow["properties"]["tasks"]["items"])
        self.same(berth.Measurement, workflow["properties"]["tasks"]["items"]["properties"]["measured"]["items"])


class Repeated(Case):
    def test_a_series(self) -> None:
        first = soon(hours=48).replace(hour=0, minute=0, second=0, microsecond=0)
        skipped = (first + timedelta(days=1)).date().isoformat()
        asked = berth.SeriesRequest("daily 09:00", npe=1, duration=600, times=4, ready=first, window="2h", except_=[skipped])
        answer = self.client.submit_series(asked)
        self.assertEqual((answer.decision, answer.series.count, answer.series.live), ("accepted", 3, 3))
        self.assertEqual([o.start for o in answer.series.occurrences], [first + timedelta(days=d, hours=9) for d in (0, 2, 3)])
        id = answer.series.id
        self.assertIn(id, [s.id for s in self.client.series(page_size=1)])
        self.assertEqual([o.state for o in self.client.cancel_series(id, first=2, last=2).series.occurrences], ["confirmed", "cancelled", "confirmed"])
        self.assertEqual(self.client.one_series(id).live, 2)
        self.assertEqual(self.client.cancel_series(id).series.live, 0)


class Reservations(Case):
    def test_life(self) -> None:
        me = self.client.me()
        self.assertEqual((me.user, me.role), (USER, "user"))
        first = self.client.reserve(far(0)).reservation
        assert first is not None and first.start is not None
        self.assertEqual((first.state, first.npe, first.duration), ("confirmed", 1, 600))
        self.assertEqual(first.start.utcoffset(), timedelta(0))

        # A user has half of the site at most: a refusal is a value, and an offer can be held and confirmed.
        refused = self.client.reserve(far(0))
        self.assertEqual((refused.decision, refused.reservation, refused.reason), ("refused", None, "quota"))
        assert refused.refusal is not None and refused.refusal.exceeded is not None
        self.assertEqual((refused.refusal.exceeded.limit, refused.refusal.exceeded.asked), ("share", 2))
        offers = self.client.offers(dataclasses.replace(far(1), hold=True), most=1)
        self.assertEqual(len(offers), 1)
        assert offers[0].cost is not None
        self.assertEqual((offers[0].cost.delayed_jobs, offers[0].cost.complete), (0, True))
        chances = self.client.chances(far(1))
        self.assertEqual([(c.event, c.later, c.share) for c in chances[:2]], [("accepted", 3600, None), ("accepted", 86400, None)])
        held = self.client.hold(offers[0], timedelta(minutes=10)).reservation
        assert held is not None
        self.assertEqual((held.state, held.start), ("held", offers[0].start))
        confirmed = self.client.confirm(held.id, if_version=held.version)
        self.assertEqual(confirmed.state, "confirmed")

        # Another version than the one that was seen is left as it is.
        with self.assertRaises(berth.Conflict) as caught:
            self.client.modify(held.id, Request(duration=300), if_version=held.version)
        self.assertEqual((caught.exception.field, caught.exception.status), ("version", 412))
        changed = self.client.modify(held.id, Request(duration=300)).reservation
        assert changed is not None
        self.assertEqual(changed.duration, 300)
        limited = self.client.modify(held.id, Request(no_show=60)).reservation
        assert limited is not None
        self.assertEqual((limited.no_show, limited.duration), (60, 300))
        reset = self.client.modify(held.id, Request(), reset=["no_show"]).reservation
        assert reset is not None
        self.assertEqual(reset.no_show, 0)
        longer = self.client.extend(held.id, by="5m").reservation
        assert longer is not None
        self.assertEqual(longer.duration, 600)
        refused = self.client.extend(first.id, until=soon(days=9999))
        self.assertEqual(refused.decision, "refused")

        self.assertEqual(self.client.release(held.id).state, "cancelled")
        listed = {r.id: r.state for r in self.client.reservations(user=USER, states=["confirmed", "cancelled"], page_size=1)}
        self.assertEqual((listed.get(first.id), listed.get(held.id)), ("confirmed", "cancelled"))
        self.assertNotIn(held.id, [r.id for r in self.client.reservations(states=["confirmed"])])
        whats = [h.what for h in self.client.history(held.id).history]
        self.assertEqual((whats[-1], "confirmed" in whats), ("cancelled", True))
        self.assertEqual(self.client.reservation(held.id).state, "cancelled")

    def test_array(self) -> None:
        answer = self.client.reserve(dataclasses.replace(far(3), array=2, deadline=soon(days=31)))
        self.assertEqual((answer.decision, [part.decision for part in answer.array]), ("accepted", ["accepted"] * 2))

    def test_constraint_and_sharing(self) -> None:
        refused = self.client.reserve(dataclasses.replace(far(4), constraint="no_such_feature"))
        self.assertEqual((refused.decision, refused.reason), ("refused", "no_suitable_site"))
        with self.assertRaises(Invalid) as caught:  # a local site knows no accounts
            self.client.reserve(dataclasses.replace(far(4), users=["bob"], account="physics"))
        self.assertEqual(caught.exception.field, "account")
        with self.assertRaises(Invalid) as caught:  # nor QOS
            self.client.reserve(dataclasses.replace(far(4), qos="high"))
        self.assertEqual(caught.exception.field, "qos")

    def test_task(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            booked = self.client.reserve(Request(npe=1, duration="1m", deadline=soon(hours=1))).reservation
            assert booked is not None
            with self.client.events() as events:
                command = ["sh", "-c", "exit 7"]
                job = self.client.run(booked.id, berth.Task(folder, command=command, env=["PATH=" + os.environ["PATH"]]))
                ended = self.until(events, "task_ended", booked.id).task
            assert ended is not None
            self.assertEqual((ended.job, ended.state, ended.exit_code), (job, "failed", 7))
            self.assertEqual([t.exit_code for t in self.client.tasks(booked.id)], [7])
            self.client.release(booked.id)


class Errors(Case):
    def test_of_the_service(self) -> None:
        with self.assertRaises(Invalid) as caught:
            self.client.reserve(Request(npe=0, deadline="tomorrow"))
        err = caught.exception
        self.assertEqual((err.code, err.status, err.field), ("invalid", 422, "npe"))
        self.assertEqual([f.field for f in err.faults], ["npe", "deadline"])
        self.assertRegex(str(err), '^npe: 0; want .*; deadline: "tomorrow"; want ')
        for call in (self.client.reservation, self.client.release, self.client.history, self.client.workflow):
            for id in ("none/such", "a?b#c"):
                with self.assertRaises(berth.NotFound) as missing:
                    call(id)
                self.assertEqual(missing.exception.status, 404)
        with self.assertRaises(berth.Denied) as denied:
            Client(SERVER, "nonsense").me()
        self.assertEqual(denied.exception.status, 401)
        with self.assertRaises(berth.Conflict) as used:
            self.client.reserve(far(5), key="once")
            self.client.reserve(far(6), key="once")
        self.assertEqual(used.exception.status, 422)

    def test_found_here(self) -> None:
        for field, call in {
            "deadline": lambda: self.client.reserve(Request(deadline=datetime(2030, 1, 1))),
            "duration": lambda: self.client.reserve(Request(duration=timedelta(seconds=1.5))),
            "tasks[0].seconds": lambda: self.client.workflow_offers(WorkflowRequest([TaskToRun("a", seconds=float("nan"))])),
            "id": lambda: self.client.release(""),
            "offer": lambda: self.client.hold(".."),
            "states": lambda: list(self.client.reservations(states="held")),
            "Idempotency-Key": lambda: self.client.reserve(far(7), key="a\nb"),
            "after": lambda: self.client.events(-1),
            "server": lambda: Client("ftp://x"),
            "token": lambda: Client(SERVER, "two words"),
            "token_file": lambda: Client(SERVER, token_file=os.devnull),
            "timeout": lambda: Client(SERVER, timeout=0),
        }.items():
            with self.subTest(field), self.assertRaises(Invalid) as caught:
                call()
            self.assertEqual((caught.exception.field, caught.exception.status), (field, None))

    def test_redirects_do_not_get_the_token(self) -> None:
        server, asked = impostor(self, 302, {"Location": "/elsewhere"}, b"")
        with self.assertRaisesRegex(berth.Unavailable, "302.*is a service of Berth there"):
            Client(server, "secret").me()
        self.assertEqual(asked, ["/v1/me"])

    def test_what_is_not_a_service_is_told(self) -> None:
        for status, body in ((200, b"<html>"), (200, b'{"user": 3}'), (200, b"[]"), (404, b"no"), (500, b'{"code": "odd", "errors": [7]}')):
            with self.subTest(body):
                server, asked = impostor(self, status, {}, body)
                with self.assertRaisesRegex(berth.Unavailable, "something else than this service|is a service of Berth there"):
                    Client(server).me()
                self.assertEqual(len(asked), 1)


class Unanswered(Case):
    def test_made_again_and_done_once(self) -> None:
        relay, client = self.relayed()
        relay.lose, relay.refuse = 1, 1
        request = far(8)
        answer = client.reserve(request)
        self.assertEqual(answer.decision, "accepted")
        self.assertEqual((relay.lose, relay.refuse, len(relay.calls)), (0, 0, 2))
        there = list(client.reservations(start=request.ready, end=request.deadline))
        self.assertEqual([r.id for r in there], [answer.id])
        self.assertEqual(relay.calls[0].count(b"POST /v1/requests"), 1)
        keys = [line for call in relay.calls[:2] for line in call.lower().split(b"\r\n") if line.startswith(b"idempotency-key")]
        self.assertEqual((len(keys), len(set(keys))), (2, 1))

    def test_given_up_with_the_key(self) -> None:
        relay, client = self.relayed(retries=0)
        relay.lose = 1
        request = far(9)
        with self.assertRaisesRegex(berth.Unavailable, "does not answer: .*; is berth serve running there") as caught:
            client.reserve(request)
        self.assertIsNone(caught.exception.status)
        self.assertEqual(client.reserve(request, key=caught.exception.key).decision, "accepted")
        self.assertEqual(len(list(client.reservations(start=request.ready, end=request.deadline))), 1)

    def test_patience(self) -> None:
        relay, client = self.relayed(timeout=1, retries=1000)
        relay.refuse = 1000
        with self.assertRaises(berth.Unavailable):
            client.me()
        self.assertGreater(relay.refuse, 990)


    def test_goes_to_the_leader(self) -> None:
        def standing_by(leader: str) -> Tuple[Client, List[str]]:
            problem = {"type": "about:blank", "title": "x", "status": 503, "code": "unavailable", "detail": "it stands by", "leader": leader}
            server, asked = impostor(self, 503, {"Content-Type": "application/problem+json"}, json.dumps(problem).encode())
            return Client(server, os.environ["BERTH_TOKEN"], retries=0), asked

        client, asked = standing_by(SERVER + "/")
        self.assertEqual(client.me(), self.client.me())
        self.assertEqual(len(asked), 1)
        # The token is sent to no other machine over plain HTTP.
        client, asked = standing_by("http://a.example.org:7117")
        with self.assertRaisesRegex(berth.Unavailable, "it stands by"):
            client.me()
        self.assertEqual(len(asked), 1)


class Streams(Case):
    def test_goes_on_behind_the_last_event(self) -> None:
        relay, client = self.relayed()
        with client.events() as events:
            first = self.client.reserve(far(10))
            accepted = self.until(events, "accepted", first.id)
            self.assertEqual(events.last, accepted.id)
            relay.cut()
            second = self.client.reserve(far(11))  # while nothing is open
            self.assertGreater(self.until(events, "accepted", second.id).id, accepted.id)
        opened = [call for call in relay.calls if b"GET /v1/events" in call]
        self.assertIn(b"Last-Event-Id: %d\r\n" % accepted.id, opened[-1])

    def test_cut_before_the_first_event(self) -> None:
        relay, client = self.relayed()
        with client.events() as events:
            relay.cut()
            missed = self.client.reserve(far(14))  # while nothing is open
            self.until(events, "accepted", missed.id)

    def test_behind_an_event(self) -> None:
        with self.client.events() as events:
            first = self.client.reserve(far(12))
            id = self.until(events, "accepted", first.id).id
        second = self.client.reserve(far(13))
        with self.client.events(id) as events:
            self.assertEqual(self.until(events, "queued", second.id).what, "queued")

    def test_a_no_ends_it(self) -> None:
        with self.assertRaises(berth.Denied):
            Client(SERVER, "nonsense").events()
        with self.assertRaises(berth.Unavailable):
            relay, client = self.relayed()
            relay.refuse = 1
            client.events()  # the first attempt is not made again

    def test_missed_events_are_told(self) -> None:
        problem = b'{"code": "not_found", "detail": "events: no longer kept", "errors": [{"field": "events", "detail": "no longer kept"}]}'
        server, asked = impostor(self, 200, {"Content-Type": "text/event-stream"}, b": events\n\nevent: gap\ndata: " + problem + b"\n\n")
        with Client(server).events(7) as events:
            with self.assertRaisesRegex(berth.NotFound, "no longer kept"):
                next(events)
            self.assertEqual((list(events), len(asked)), ([], 1))


class Workflows(Case):
    def workflow(self, folder: str, *commands: str, **how: object) -> WorkflowRequest:
        tasks = []
        for i, command in enumerate(commands):
            after = [tasks[-1].id] if tasks else None
            env = ["PATH=" + os.environ["PATH"]]
            tasks.append(TaskToRun(f"t{i}", seconds=2, most=1, command=["sh", "-c", command], dir=folder, env=env, after=after))
        return WorkflowRequest(tasks, **how)  # type: ignore[arg-type]

    def test_runs_fails_and_is_retried(self) -> None:
        with tempfile.TemporaryDirectory() as folder, self.client.events() as events:
            asked = self.workflow(folder, "echo one > a", "test -e there && cat a > b", id="py-run", deadline=soon(hours=1))
            answer = self.client.submit_workflow(asked)
            self.assertEqual((answer.decision, [t.id for t in answer.workflow.tasks]), ("promised", ["t0", "t1"]), answer.workflow.refusal)
            over = self.until(events, "workflow_over", "py-run").workflow
            assert over is not None
            self.assertEqual(over.state, "failed")
            Path(folder, "there").touch()
            self.client.retry_workflow("py-run", deadline=soon(hours=2))
            over = self.until(events, "workflow_over", "py-run").workflow
            assert over is not None
            self.assertEqual((over.state, Path(folder, "b").read_text()), ("succeeded", "one\n"))
            shown = self.client.workflow("py-run")
            self.assertEqual([(t.state, t.tries) for t in shown.tasks], [("succeeded", 1), ("succeeded", 2)])
            with self.assertRaises(berth.Conflict):
                self.client.retry_workflow("py-run")
            self.assertEqual([w.id for w in self.client.workflows(states=["succeeded"])], ["py-run"])

    def test_refused_held_confirmed_cancelled(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            asked = self.workflow(folder, "true", "true", id="py-hold", deadline=soon(minutes=30))
            for task in asked.tasks:
                task.seconds, task.few, task.most = 1200, 1, 1
            refused = self.client.submit_workflow(asked)
            assert refused.workflow.refusal is not None
            self.assertEqual((refused.decision, refused.workflow.refusal.reason), ("refused", "deadline_missed"))
            self.assertEqual([o.critical for o in refused.offers[:1]], [["t0", "t1"]])
            offers = self.client.workflow_offers(asked)
            self.assertGreaterEqual(len(offers), 1)
            asked.deadline, asked.algorithm, asked.hold = offers[-1].deadline, offers[-1].algorithm, "10m"
            held = self.client.submit_workflow(asked)
            self.assertEqual(held.decision, "held", held.workflow.refusal)
            self.assertEqual(self.client.confirm_workflow("py-hold").decision, "promised")
            self.assertEqual(self.client.cancel_workflow("py-hold").workflow.state, "cancelled")
            self.assertIn("py-hold", [w.id for w in self.client.workflows(user=USER, page_size=1)])


class Settings(Case):
    def test_login_of_the_commands(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            alone = {k: v for k, v in os.environ.items() if not k.startswith("BERTH_")}
            alone["XDG_CONFIG_HOME"] = folder
            with mock.patch.dict(os.environ, alone, clear=True):
                subprocess.run(["berth", "login", SERVER, "--token-file", OPERATOR], check=True, capture_output=True)
                self.assertEqual((Client().me().role, Client().server), ("operator", SERVER))
                with self.assertRaises(berth.Denied):  # the token of another service is not sent
                    Client(SERVER.replace("127.0.0.1", "localhost")).me()
                os.environ["BERTH_TOKEN"] = self.client._connection._token
                self.assertEqual(Client().me().role, "user")
                self.assertEqual(Client(token_file=OPERATOR).me().role, "operator")

    def test_a_token_on_its_way_is_warned_of(self) -> None:
        with self.assertWarnsRegex(UserWarning, "without TLS"):
            Client("http://node1:7117", "secret")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for server in ("https://node1", "http://localhost:1", "http://[::1]:1", "http://127.0.0.2:1/"):
                Client(server, "secret")


class TheSocket(Case):
    """Over the socket the machine says who asks: no token is needed."""

    def setUp(self) -> None:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("BERTH_")}
        patch = mock.patch.dict(os.environ, clean, clear=True)
        patch.start()
        self.addCleanup(patch.stop)
        self.client = Client("unix://" + SOCKET)

    def test_who_asks_is_the_user_that_runs_it(self) -> None:
        me = self.client.me()
        self.assertEqual((me.user, me.way, self.client.server), (USER, "socket", "unix://" + SOCKET))

    def test_calls_and_events_are_those_of_any_service(self) -> None:
        with self.client.events() as events:
            request = far(97)
            answer = self.client.reserve(request, key="over-the-socket")
            self.assertEqual(self.client.reserve(request, key="over-the-socket").reservation.id, answer.reservation.id)
            self.assertEqual(self.until(events, "accepted", answer.reservation.id).what, "accepted")
        self.assertIn(answer.reservation.id, [r.id for r in self.client.reservations(page_size=1)])
        self.client.release(answer.reservation.id)

    def test_it_is_found_where_a_service_of_ones_own_has_it(self) -> None:
        with tempfile.TemporaryDirectory() as state:
            os.mkdir(os.path.join(state, "berth"))
            os.symlink(SOCKET, os.path.join(state, "berth", "berth.sock"))
            with mock.patch.dict(os.environ, {"XDG_STATE_HOME": state, "XDG_CONFIG_HOME": state}), mock.patch("berth.settings._PACKAGED", state):
                client = Client()
                self.assertEqual(client.server, "unix://" + os.path.join(state, "berth", "berth.sock"))
                self.assertEqual(client.me().user, USER)

    def test_one_that_is_not_there_is_said(self) -> None:
        with self.assertRaises(BerthError) as caught:
            Client("unix://" + SOCKET + ".gone", retries=0).me()
        self.assertEqual(caught.exception.code, "unavailable")
        self.assertIn(SOCKET + ".gone does not answer", caught.exception.message)
        for bad in ("unix://", "unix://host/path", "unix:/path"):
            with self.assertRaises(Invalid) as wrong:
                Client(bad)
            self.assertEqual(wrong.exception.field, "server")


if __name__ == "__main__":
    unittest.main()
