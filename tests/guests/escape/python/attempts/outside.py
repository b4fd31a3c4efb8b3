"""Attempts at everything outside of the sandbox."""

import asyncio
import concurrent.futures
import getpass
import glob
import http.client
import importlib
import io
import locale
import multiprocessing
import os
import pathlib
import platform
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import zoneinfo

SURROUNDINGS = {
    "environment": lambda: dict(os.environ),
    "PATH": lambda: os.getenv("PATH"),
    "arguments": lambda: sys.argv,
    "folder": lambda: os.getcwd(),
    "home": lambda: os.path.expanduser("~"),
    "folder for scratch": lambda: tempfile.gettempdir(),
    "host name": lambda: socket.gethostname(),
    "host name, by the platform": lambda: platform.node(),
    "platform": lambda: platform.platform(),
    "program": lambda: sys.executable,
    "flags": lambda: (sys.flags.hash_randomization, sys.flags.utf8_mode, sys.byteorder),
    "user": lambda: getpass.getuser(),
    "process": lambda: os.getpid(),
    "parent": lambda: os.getppid(),
    "processors": lambda: os.cpu_count(),
    "load": lambda: os.getloadavg(),
    "locale": lambda: locale.getlocale(),
    "another locale": lambda: locale.setlocale(locale.LC_ALL, "de_DE.UTF-8"),
    "locale of the environment": lambda: locale.setlocale(locale.LC_ALL, ""),
    "time zone": lambda: (time.tzname, time.timezone, time.daylight),
    "another time zone": lambda: zoneinfo.ZoneInfo("Europe/Berlin"),
    "time zones": lambda: zoneinfo.available_timezones(),
    "encoding of files": lambda: (sys.getfilesystemencoding(), locale.getpreferredencoding()),
    "standard input": lambda: sys.stdin.read(),
    "a terminal": lambda: (sys.stdin.isatty(), shutil.get_terminal_size()),
    "a loop of events": lambda: asyncio.run(asyncio.sleep(0, "ran")),
    "a database in memory": lambda: sqlite3.connect(":memory:").execute("SELECT 6 * 7").fetchone(),
    "handle a signal": lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    "where modules are": lambda: sys.path,
}


def read(path):
    with open(path, "rb") as file:
        return file.read(20)


def write(path):
    with open(path, "w") as file:
        file.write("x")
    return "written"


def descriptors():
    for number in range(3, 20):
        try:
            return number, os.read(number, 1)
        except OSError as error:
            last = error
    raise last


def some(answers):
    """What there is; nothing at all is as good as a refusal."""
    found = list(answers)
    if not found:
        raise LookupError("there is nothing")
    return found


FILES = {
    "read /etc/passwd": lambda: read("/etc/passwd"),
    "read the environment": lambda: read("/proc/self/environ"),
    "read /dev/urandom": lambda: read("/dev/urandom"),
    "read above the root": lambda: read("../../../../etc/hostname"),
    "read a module": lambda: read(__file__),
    "read by os.open": lambda: os.open("/etc/passwd", os.O_RDONLY),
    "read by FileIO": lambda: io.FileIO("/etc/passwd"),
    "list /": lambda: os.listdir("/"),
    "list .": lambda: os.listdir(),
    "scan .": lambda: some(os.scandir(".")),
    "walk": lambda: some(os.walk("/")),
    "glob": lambda: some(glob.glob("/*")),
    "glob by pathlib": lambda: some(pathlib.Path("/").rglob("*")),
    "is there a root": lambda: os.stat("/"),
    "write": lambda: write("/tmp/escaped"),
    "write here": lambda: write("escaped"),
    "write for scratch": lambda: tempfile.NamedTemporaryFile().name,
    "make a folder": lambda: os.mkdir("/escaped"),
    "make a link": lambda: os.symlink("/etc/passwd", "escaped"),
    "remove": lambda: os.remove("/tmp/escaped"),
    "change the folder": lambda: os.chdir("/"),
    "space on the disk": lambda: shutil.disk_usage("/"),
    "open a database": lambda: sqlite3.connect("/tmp/escaped.db").execute("CREATE TABLE escaped (n)"),
    "descriptors 3 to 19": descriptors,
}

NETWORK = {
    "connect": lambda: socket.create_connection(("127.0.0.1", 22), timeout=3600),
    "listen": lambda: socket.create_server(("127.0.0.1", 0)),
    "send": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 53)),
    "a socket of the system's": lambda: socket.socket(socket.AF_UNIX).connect("/run/docker.sock"),
    "a pair of sockets": lambda: socket.socketpair(),
    "look up a name": lambda: socket.getaddrinfo("example.com", 80),
    "look up localhost": lambda: socket.gethostbyname("localhost"),
    "get a page": lambda: urllib.request.urlopen("http://example.com/", timeout=3600),
    "get a file by URL": lambda: urllib.request.urlopen("file:///etc/passwd").read(),
    "get a page, by hand": lambda: http.client.HTTPConnection("192.0.2.1", timeout=3600).request("GET", "/"),
    "interfaces": lambda: socket.if_nameindex(),
}

PROCESSES = {
    "run": lambda: subprocess.run(["/bin/sh", "-c", "id"], capture_output=True).stdout,
    "run by the shell": lambda: os.system("id"),
    "run and read": lambda: os.popen("id").read(),
    "fork": lambda: os.fork(),
    "exec": lambda: os.execv("/bin/true", ["true"]),
    "spawn": lambda: os.posix_spawn("/bin/true", ["true"], {}),
    "start by multiprocessing": lambda: multiprocessing.Process(target=print).start(),
    "a pool of processes": lambda: concurrent.futures.ProcessPoolExecutor().submit(len, "x").result(),
    "signal": lambda: os.kill(1, signal.SIGTERM),
    "an alarm": lambda: signal.alarm(1),
    "pipe": lambda: os.pipe(),
}


def started(thread):
    thread.start()
    return "started"


THREADS = {
    "start": lambda: started(threading.Thread(target=print)),
    "a timer": lambda: started(threading.Timer(0, print)),
    "a pool": lambda: concurrent.futures.ThreadPoolExecutor().submit(len, "x").result(),
}


def downloaded(text):
    """Code that came as data is no escape: it runs in the same sandbox."""
    names = {}
    exec(compile(text, "downloaded", "exec"), names)
    return names["answer"]()


CODE = {
    "call C": lambda: importlib.import_module("ctypes").CDLL(None).getpid(),
    "map memory": lambda: importlib.import_module("mmap").mmap(-1, 1 << 20),
    "load a native extension": lambda: importlib.import_module("_imp_escaped"),
    "import a module that the build did not": lambda: importlib.import_module("turtledemo.clock"),
    "import from a folder": lambda: (sys.path.insert(0, "/tmp"), importlib.import_module("escaped")),
    "read a file by downloaded code": lambda: downloaded("def answer(): return open('/etc/passwd').read()"),
}


def attempts_of(area, attempts):
    return {f"{area}: {what}": attempt for what, attempt in attempts.items()}


ATTEMPTS = (
    attempts_of("surroundings", SURROUNDINGS)
    | attempts_of("files", FILES)
    | attempts_of("network", NETWORK)
    | attempts_of("processes", PROCESSES)
    | attempts_of("threads", THREADS)
    | attempts_of("code", CODE)
)
