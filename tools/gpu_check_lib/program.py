"""Runs one program of a stage: a time limit, its output kept in a file, what went wrong in one line."""

import os
import shlex
import signal
import subprocess
import time


class Outcome:
    """Exit code (None: stopped at the time limit), output of both streams, seconds, the command as typed."""

    def __init__(self, code, output, seconds, command):
        self.code, self.output, self.seconds, self.command = code, output, seconds, command

    def trouble(self):
        """Why it is no success, in one line; "" for exit code 0."""
        if self.code == 0:
            return ""
        last = [line for line in self.output.splitlines() if line.strip()]
        end = f": {last[-1].strip()[:200]}" if last else ""
        if self.code is None:
            return f"stopped after {self.seconds:.0f} s{end}"
        return (f"killed by {signal.Signals(-self.code).name}" if self.code < 0 else f"exit code {self.code}") + end


def shown(command, place):
    """The command as it is typed at the root of a tree that was built there."""
    words = [str(word).replace(f"{place.bin}/", "build/cuda/").replace(f"{place.root}/", "") for word in command]
    return shlex.join(words)


def stop(process):
    """Ends a program and what it started: asked first, as some clean up, then killed."""
    for how, seconds in ((signal.SIGTERM, 5), (signal.SIGKILL, None)):
        try:
            os.killpg(process.pid, how)
        except ProcessLookupError:
            pass
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            continue


def run(command, place, name, limit):
    """`name`: of the log, PLACE.out/logs/NAME.log. Never raises for what the program does."""
    command = [str(word) for word in command]
    limit = min(limit, place.limit)
    log = place.out / "logs" / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    with log.open("wb") as sink:
        try:
            process = subprocess.Popen(
                command,
                stdout=sink,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                cwd=place.root,
                start_new_session=True,
            )
        except OSError as error:
            sink.write(f"{command[0]}: {error.strerror}\n".encode())
            sink.flush()
            return Outcome(127, log.read_text(errors="replace"), 0.0, shown(command, place))
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            stop(process)
            code = None
        except BaseException:  # somebody stops this script: a session of its own hears nothing of it
            stop(process)
            raise
    return Outcome(code, log.read_text(errors="replace"), time.monotonic() - begin, shown(command, place))
