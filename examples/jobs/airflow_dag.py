"""A DAG of Airflow 3 that publishes a table once a month and checks what was published."""

from __future__ import annotations

import json
import subprocess
from datetime import datetime
from typing import Any

from airflow.exceptions import AirflowException, AirflowFailException
from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import DAG

FOLDER = "/srv/visits"
AGAIN = ("OSError", "MemoryError", "KeyboardInterrupt", "Terminated")  # kinds that another try can help


def shoal(*words: str, folder: str) -> dict[str, Any]:
    """What a command of shoal prints with --json; an exception that Airflow understands unless it exits with 0."""
    done = subprocess.run(["shoal", *words, "--json"], cwd=folder, capture_output=True, text=True)
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise AirflowException(f"killed with status {done.returncode}") from None  # try again
    error = answer.get("error", {"kind": "check", "message": f"{words[0]} found something that does not hold"})
    if done.returncode == 0:
        return answer
    raise (AirflowException if error["kind"] in AGAIN else AirflowFailException)(error["message"])


def publish(folder: str = FOLDER) -> str:
    """Publish; returns the certificate's path.  An attempt that was finished is not repeated."""
    policy, secret = "visits.policy.toml", "visits.secret"
    answer = shoal(
        "anonymize", "visits.csv", "--policy", policy, "--secret", secret, "-o", "release.csv", "--if-changed",
        folder=folder,
    )  # fmt: skip
    return str(answer["certificate_file"])


def check(folder: str = FOLDER) -> int:
    """Check the release; returns the number of checks that hold."""
    return len(shoal("verify", "release.csv", folder=folder)["findings"])


with DAG("publish_visits", start_date=datetime(2026, 1, 1), schedule="@monthly", catchup=False) as dag:
    first = PythonOperator(task_id="publish", python_callable=publish, retries=2)
    second = PythonOperator(task_id="check", python_callable=check)
    first >> second
