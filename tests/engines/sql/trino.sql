SELECT
  "t2"."age",
  "t2"."town",
  "t2"."flu",
  "t2"."rows",
  TO_HEX(
    XXHASH64(
      TO_UTF8(
        CONCAT(
          '0',
          ':',
          CASE
            WHEN CAST("t2"."age" AS VARCHAR) IS NULL
            THEN 'n'
            ELSE CONCAT(
              'v',
              CAST(LENGTH(CAST("t2"."age" AS VARCHAR)) AS VARCHAR),
              ':',
              CAST("t2"."age" AS VARCHAR)
            )
          END,
          CASE
            WHEN "t2"."town" IS NULL
            THEN 'n'
            ELSE CONCAT('v', CAST(LENGTH("t2"."town") AS VARCHAR), ':', "t2"."town")
          END,
          CASE
            WHEN "t2"."flu" IS NULL
            THEN 'n'
            ELSE CONCAT('v', CAST(LENGTH("t2"."flu") AS VARCHAR), ':', "t2"."flu")
          END
        )
      )
    )
  ) AS "key"
FROM (
  SELECT
    *
  FROM (
    SELECT
      "t0"."age",
      "t0"."town",
      "t0"."flu",
      COUNT(*) AS "rows"
    FROM "people" AS "t0"
    GROUP BY
      1,
      2,
      3
  ) AS "t1"
) AS "t2"

SELECT
  "t1"."age",
  "t1"."town",
  "t1"."flu",
  "t1"."weight",
  "t1"."seen",
  "t1"."ok",
  "t1"."salt",
  "t1"."cell",
  "t1"."place",
  COUNT("t1"."place") OVER (
    PARTITION BY "t1"."cell"
    ORDER BY "t1"."place" ASC NULLS FIRST, "t1"."weight" ASC NULLS FIRST
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  ) AS "ordinal"
FROM (
  SELECT
    "t0"."age",
    "t0"."town",
    "t0"."flu",
    "t0"."weight",
    "t0"."seen",
    "t0"."ok",
    "t0"."salt",
    "t0"."cell",
    SUBSTR(
      LOWER(
        TO_HEX(
          SHA256(
            TO_UTF8(
              CONCAT(
                "t0"."salt",
                CASE
                  WHEN CAST("t0"."age" AS VARCHAR) IS NULL
                  THEN 'n'
                  ELSE CONCAT(
                    'v',
                    CAST(LENGTH(CAST("t0"."age" AS VARCHAR)) AS VARCHAR),
                    ':',
                    CAST("t0"."age" AS VARCHAR)
                  )
                END,
                CASE
                  WHEN "t0"."town" IS NULL
                  THEN 'n'
                  ELSE CONCAT('v', CAST(LENGTH("t0"."town") AS VARCHAR), ':', "t0"."town")
                END,
                CASE
                  WHEN "t0"."flu" IS NULL
                  THEN 'n'
                  ELSE CONCAT('v', CAST(LENGTH("t0"."flu") AS VARCHAR), ':', "t0"."flu")
                END,
                CASE
                  WHEN CASE
                    WHEN (
                      "t0"."weight" IS NULL
                    ) OR IS_NAN("t0"."weight")
                    THEN CAST(NULL AS VARCHAR)
                    WHEN ABS("t0"."weight") < 9007199254740992
                    THEN CONCAT(
                      CAST(CAST(FLOOR("t0"."weight") AS BIGINT) AS VARCHAR),
                      '.',
                      CAST(CAST(FLOOR((
                        "t0"."weight" - CAST(FLOOR("t0"."weight") AS BIGINT)
                      ) * 4503599627370496) AS BIGINT) AS VARCHAR)
                    )
                    WHEN "t0"."weight" > 0
                    THEN 'far'
                    ELSE '-far'
                  END IS NULL
                  THEN 'n'
                  ELSE CONCAT(
                    'v',
                    CAST(LENGTH(
                      CASE
                        WHEN (
                          "t0"."weight" IS NULL
                        ) OR IS_NAN("t0"."weight")
                        THEN CAST(NULL AS VARCHAR)
                        WHEN ABS("t0"."weight") < 9007199254740992
                        THEN CONCAT(
                          CAST(CAST(FLOOR("t0"."weight") AS BIGINT) AS VARCHAR),
                          '.',
                          CAST(CAST(FLOOR((
                            "t0"."weight" - CAST(FLOOR("t0"."weight") AS BIGINT)
                          ) * 4503599627370496) AS BIGINT) AS VARCHAR)
                        )
                        WHEN "t0"."weight" > 0
                        THEN 'far'
                        ELSE '-far'
                      END
                    ) AS VARCHAR),
                    ':',
                    CASE
                      WHEN (
                        "t0"."weight" IS NULL
                      ) OR IS_NAN("t0"."weight")
                      THEN CAST(NULL AS VARCHAR)
                      WHEN ABS("t0"."weight") < 9007199254740992
                      THEN CONCAT(
                        CAST(CAST(FLOOR("t0"."weight") AS BIGINT) AS VARCHAR),
                        '.',
                        CAST(CAST(FLOOR((
                          "t0"."weight" - CAST(FLOOR("t0"."weight") AS BIGINT)
                        ) * 4503599627370496) AS BIGINT) AS VARCHAR)
                      )
                      WHEN "t0"."weight" > 0
                      THEN 'far'
                      ELSE '-far'
                    END
                  )
                END,
                CASE
                  WHEN CAST((
                    CAST(TO_UNIXTIME(DATE_TRUNC('SECOND', "t0"."seen")) AS BIGINT) * 1000000
                  ) + (
                    CAST(CAST(DATE_FORMAT("t0"."seen", '%f') AS INTEGER) AS BIGINT) % 1000000
                  ) AS VARCHAR) IS NULL
                  THEN 'n'
                  ELSE CONCAT(
                    'v',
                    CAST(LENGTH(
                      CAST((
                        CAST(TO_UNIXTIME(DATE_TRUNC('SECOND', "t0"."seen")) AS BIGINT) * 1000000
                      ) + (
                        CAST(CAST(DATE_FORMAT("t0"."seen", '%f') AS INTEGER) AS BIGINT) % 1000000
                      ) AS VARCHAR)
                    ) AS VARCHAR),
                    ':',
                    CAST((
                      CAST(TO_UNIXTIME(DATE_TRUNC('SECOND', "t0"."seen")) AS BIGINT) * 1000000
                    ) + (
                      CAST(CAST(DATE_FORMAT("t0"."seen", '%f') AS INTEGER) AS BIGINT) % 1000000
                    ) AS VARCHAR)
                  )
                END,
                CASE
                  WHEN CASE
                    WHEN "t0"."ok" IS NULL
                    THEN CAST(NULL AS VARCHAR)
                    WHEN "t0"."ok"
                    THEN 'true'
                    ELSE 'false'
                  END IS NULL
                  THEN 'n'
                  ELSE CONCAT(
                    'v',
                    CAST(LENGTH(
                      CASE
                        WHEN "t0"."ok" IS NULL
                        THEN CAST(NULL AS VARCHAR)
                        WHEN "t0"."ok"
                        THEN 'true'
                        ELSE 'false'
                      END
                    ) AS VARCHAR),
                    ':',
                    CASE
                      WHEN "t0"."ok" IS NULL
                      THEN CAST(NULL AS VARCHAR)
                      WHEN "t0"."ok"
                      THEN 'true'
                      ELSE 'false'
                    END
                  )
                END
              )
            )
          )
        )
      ),
      1,
      16
    ) AS "place"
  FROM "joined" AS "t0"
) AS "t1"
