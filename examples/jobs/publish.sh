#!/bin/sh
# Publishes visits.csv if anything has changed since the last run, and checks what was published.
# crontab:  15 3 * * *  cd /srv/visits && ./publish.sh
set -u
shoal anonymize visits.csv --policy visits.policy.toml --secret visits.secret -o release.csv \
    --if-changed --json --log-json > answer.json 2> log.jsonl
status=$?
if [ "$status" -ne 0 ]; then
    tail -n 1 log.jsonl >&2 # cron mails what is printed: the last line says why
    exit "$status"
fi
exec shoal verify release.csv release.certificate.json --json > verified.json
