"""Drives k9s on a terminal of its own: k9s.py PROGRAM ARGUMENTS...

Each step types keys and waits until the terminal has shown a text. Exits with 1 if a text does not come.
"""

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time

STEPS = [
    ("", "Context"),
    (":pods default\r", "gang-work-0"),
    ("l", "hello from k9s"),
    ("\x1b", "gang-work-0"),
    ("d", "Node:"),
    ("\x1b", "gang-work-0"),
    (":vcjob default\r", "MINAVAILABLE"),
    (":queues\r", "root"),
    (":nodes\r", "Ready"),
]
WITHIN = 20


def main():
    process, terminal = pty.fork()
    if process == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execv(sys.argv[1], sys.argv[1:])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
    status = 0
    for keys, text in STEPS:
        os.write(terminal, keys.encode())
        shown = wait_for(terminal, text)
        found = text in shown
        print(f"{keys!r}: {text!r} {'is shown' if found else 'is not shown'}", flush=True)
        if not found:
            print(shown[-2000:])
            status = 1
            break
    os.write(terminal, b":q\r")
    os.close(terminal)
    os.kill(process, 15)
    os.waitpid(process, 0)
    return status


def wait_for(terminal, text):
    """What is on the terminal until the text is, without control sequences."""
    raw, end = b"", time.monotonic() + WITHIN
    while time.monotonic() < end:
        ready, _, _ = select.select([terminal], [], [], 0.2)
        if not ready:
            continue
        try:
            raw += os.read(terminal, 65536)
        except OSError:
            break
        shown = re.sub(r"\x1b(\[[0-9;?]*[a-zA-Z]|\([A-Z0-9]|[=>])", "", raw.decode(errors="replace"))
        if text in shown:
            return shown
    return re.sub(r"\x1b(\[[0-9;?]*[a-zA-Z]|\([A-Z0-9]|[=>])", "", raw.decode(errors="replace"))


sys.exit(main())
