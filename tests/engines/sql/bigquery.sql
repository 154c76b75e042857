SELECT
  `t2`.`age`,
  `t2`.`town`,
  `t2`.`flu`,
  `t2`.`rows`,
  FARM_FINGERPRINT(
    CONCAT(
      '0',
      ':',
      CASE
        WHEN CAST(`t2`.`age` AS STRING) IS NULL
        THEN 'n'
        ELSE CONCAT(
          'v',
          CAST(LENGTH(CAST(`t2`.`age` AS STRING)) AS STRING),
          ':',
          CAST(`t2`.`age` AS STRING)
        )
      END,
      CASE
        WHEN `t2`.`town` IS NULL
        THEN 'n'
        ELSE CONCAT('v', CAST(LENGTH(`t2`.`town`) AS STRING), ':', `t2`.`town`)
      END,
      CASE
        WHEN `t2`.`flu` IS NULL
        THEN 'n'
        ELSE CONCAT('v', CAST(LENGTH(`t2`.`flu`) AS STRING), ':', `t2`.`flu`)
      END
    )
  ) AS `key`
FROM (
  SELECT
    *
  FROM (
    SELECT
      `t0`.`age`,
      `t0`.`town`,
      `t0`.`flu`,
      COUNT(*) AS `rows`
    FROM `people` AS `t0`
    GROUP BY
      1,
      2,
      3
  ) AS `t1`
) AS `t2`

SELECT
  `t1`.`age`,
  `t1`.`town`,
  `t1`.`flu`,
  `t1`.`weight`,
  `t1`.`seen`,
  `t1`.`ok`,
  `t1`.`salt`,
  `t1`.`cell`,
  `t1`.`place`,
  COUNT(`t1`.`place`) OVER (
    PARTITION BY `t1`.`cell`
    ORDER BY `t1`.`place` ASC, `t1`.`weight` ASC
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  ) AS `ordinal`
FROM (
  SELECT
    `t0`.`age`,
    `t0`.`town`,
    `t0`.`flu`,
    `t0`.`weight`,
    `t0`.`seen`,
    `t0`.`ok`,
    `t0`.`salt`,
    `t0`.`cell`,
    SUBSTRING(
      TO_HEX(
        SHA256(
          CONCAT(
            `t0`.`salt`,
            CASE
              WHEN CAST(`t0`.`age` AS STRING) IS NULL
              THEN 'n'
              ELSE CONCAT(
                'v',
                CAST(LENGTH(CAST(`t0`.`age` AS STRING)) AS STRING),
                ':',
                CAST(`t0`.`age` AS STRING)
              )
            END,
            CASE
              WHEN `t0`.`town` IS NULL
              THEN 'n'
              ELSE CONCAT('v', CAST(LENGTH(`t0`.`town`) AS STRING), ':', `t0`.`town`)
            END,
            CASE
              WHEN `t0`.`flu` IS NULL
              THEN 'n'
              ELSE CONCAT('v', CAST(LENGTH(`t0`.`flu`) AS STRING), ':', `t0`.`flu`)
            END,
            CASE
              WHEN CASE
                WHEN (
                  `t0`.`weight` IS NULL
                ) OR IS_NAN(`t0`.`weight`)
                THEN CAST(NULL AS STRING)
                WHEN ABS(`t0`.`weight`) < 9007199254740992
                THEN CONCAT(
                  CAST(CAST(FLOOR(`t0`.`weight`) AS INT64) AS STRING),
                  '.',
                  CAST(CAST(FLOOR((
                    `t0`.`weight` - CAST(FLOOR(`t0`.`weight`) AS INT64)
                  ) * 4503599627370496) AS INT64) AS STRING)
                )
                WHEN `t0`.`weight` > 0
                THEN 'far'
                ELSE '-far'
              END IS NULL
              THEN 'n'
              ELSE CONCAT(
                'v',
                CAST(LENGTH(
                  CASE
                    WHEN (
                      `t0`.`weight` IS NULL
                    ) OR IS_NAN(`t0`.`weight`)
                    THEN CAST(NULL AS STRING)
                    WHEN ABS(`t0`.`weight`) < 9007199254740992
                    THEN CONCAT(
                      CAST(CAST(FLOOR(`t0`.`weight`) AS INT64) AS STRING),
                      '.',
                      CAST(CAST(FLOOR((
                        `t0`.`weight` - CAST(FLOOR(`t0`.`weight`) AS INT64)
                      ) * 4503599627370496) AS INT64) AS STRING)
                    )
                    WHEN `t0`.`weight` > 0
                    THEN 'far'
                    ELSE '-far'
                  END
                ) AS STRING),
                ':',
                CASE
                  WHEN (
                    `t0`.`weight` IS NULL
                  ) OR IS_NAN(`t0`.`weight`)
                  THEN CAST(NULL AS STRING)
                  WHEN ABS(`t0`.`weight`) < 9007199254740992
                  THEN CONCAT(
                    CAST(CAST(FLOOR(`t0`.`weight`) AS INT64) AS STRING),
                    '.',
                    CAST(CAST(FLOOR((
                      `t0`.`weight` - CAST(FLOOR(`t0`.`weight`) AS INT64)
                    ) * 4503599627370496) AS INT64) AS STRING)
                  )
                  WHEN `t0`.`weight` > 0
                  THEN 'far'
                  ELSE '-far'
                END
              )
            END,
            CASE
              WHEN CAST((
                CAST(UNIX_SECONDS(TIMESTAMP_TRUNC(`t0`.`seen`, SECOND)) AS INT64) * 1000000
              ) + (
                MOD(CAST(EXTRACT(microsecond FROM `t0`.`seen`) AS INT64), 1000000)
              ) AS STRING) IS NULL
              THEN 'n'
              ELSE CONCAT(
                'v',
                CAST(LENGTH(
                  CAST((
                    CAST(UNIX_SECONDS(TIMESTAMP_TRUNC(`t0`.`seen`, SECOND)) AS INT64) * 1000000
                  ) + (
                    MOD(CAST(EXTRACT(microsecond FROM `t0`.`seen`) AS INT64), 1000000)
                  ) AS STRING)
                ) AS STRING),
                ':',
                CAST((
                  CAST(UNIX_SECONDS(TIMESTAMP_TRUNC(`t0`.`seen`, SECOND)) AS INT64) * 1000000
                ) + (
                  MOD(CAST(EXTRACT(microsecond FROM `t0`.`seen`) AS INT64), 1000000)
                ) AS STRING)
              )
            END,
            CASE
              WHEN CASE
                WHEN `t0`.`ok` IS NULL
                THEN CAST(NULL AS STRING)
                WHEN `t0`.`ok`
                THEN 'true'
                ELSE 'false'
              END IS NULL
              THEN 'n'
              ELSE CONCAT(
                'v',
                CAST(LENGTH(
                  CASE
                    WHEN `t0`.`ok` IS NULL
                    THEN CAST(NULL AS STRING)
                    WHEN `t0`.`ok`
                    THEN 'true'
                    ELSE 'false'
                  END
                ) AS STRING),
                ':',
                CASE
                  WHEN `t0`.`ok` IS NULL
                  THEN CAST(NULL AS STRING)
                  WHEN `t0`.`ok`
                  THEN 'true'
                  ELSE 'false'
                END
              )
            END
          )
        )
      ),
      1,
      16
    ) AS `place`
  FROM `joined` AS `t0`
) AS `t1`
