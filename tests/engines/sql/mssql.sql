SELECT
  [t2].[age],
  [t2].[town],
  [t2].[flu],
  [t2].[rows],
  LEFT(
    LOWER(
      CONVERT(
        VARCHAR(MAX),
        HASHBYTES(
          'SHA2_256',
          '0' + ':' + CASE
            WHEN CAST([t2].[age] AS VARCHAR(max)) IS NULL
            THEN 'n'
            ELSE 'v' + CAST((
              LEN('A' + CAST([t2].[age] AS VARCHAR(max)) + 'Z') - 2
            ) AS VARCHAR(max)) + ':' + CAST([t2].[age] AS VARCHAR(max))
          END + CASE
            WHEN [t2].[town] IS NULL
            THEN 'n'
            ELSE 'v' + CAST((
              LEN('A' + [t2].[town] + 'Z') - 2
            ) AS VARCHAR(max)) + ':' + [t2].[town]
          END + CASE
            WHEN [t2].[flu] IS NULL
            THEN 'n'
            ELSE 'v' + CAST((
              LEN('A' + [t2].[flu] + 'Z') - 2
            ) AS VARCHAR(max)) + ':' + [t2].[flu]
          END
        ),
        2
      )
    ),
    16
  ) AS [key]
FROM (
  SELECT
    [t1].[age],
    [t1].[town],
    [t1].[flu],
    [t1].[rows]
  FROM (
    SELECT
      [t0].[age],
      [t0].[town],
      [t0].[flu],
      COUNT_BIG(*) AS [rows]
    FROM [people] AS [t0]
    GROUP BY
      [t0].[age],
      [t0].[town],
      [t0].[flu]
  ) AS [t1]
) AS [t2]

SELECT
  [t2].[age],
  [t2].[town],
  [t2].[flu],
  [t2].[weight],
  [t2].[seen],
  IIF([t2].[ok] <> 0, 1, 0) AS [ok],
  [t2].[salt],
  [t2].[cell],
  [t2].[place],
  [t2].[ordinal]
FROM (
  SELECT
    [t1].[age],
    [t1].[town],
    [t1].[flu],
    [t1].[weight],
    [t1].[seen],
    [t1].[ok],
    [t1].[salt],
    [t1].[cell],
    [t1].[place],
    COUNT([t1].[place]) OVER (
      PARTITION BY [t1].[cell]
      ORDER BY [t1].[place] ASC, [t1].[weight] ASC
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS [ordinal]
  FROM (
    SELECT
      [t0].[age],
      [t0].[town],
      [t0].[flu],
      [t0].[weight],
      [t0].[seen],
      [t0].[ok],
      [t0].[salt],
      [t0].[cell],
      LEFT(
        LOWER(
          CONVERT(
            VARCHAR(MAX),
            HASHBYTES(
              'SHA2_256',
              [t0].[salt] + CASE
                WHEN CAST([t0].[age] AS VARCHAR(max)) IS NULL
                THEN 'n'
                ELSE 'v' + CAST((
                  LEN('A' + CAST([t0].[age] AS VARCHAR(max)) + 'Z') - 2
                ) AS VARCHAR(max)) + ':' + CAST([t0].[age] AS VARCHAR(max))
              END + CASE
                WHEN [t0].[town] IS NULL
                THEN 'n'
                ELSE 'v' + CAST((
                  LEN('A' + [t0].[town] + 'Z') - 2
                ) AS VARCHAR(max)) + ':' + [t0].[town]
              END + CASE
                WHEN [t0].[flu] IS NULL
                THEN 'n'
                ELSE 'v' + CAST((
                  LEN('A' + [t0].[flu] + 'Z') - 2
                ) AS VARCHAR(max)) + ':' + [t0].[flu]
              END + CASE
                WHEN CASE
                  WHEN [t0].[weight] IS NULL
                  THEN CAST(NULL AS VARCHAR(max))
                  WHEN ABS([t0].[weight]) < 9007199254740992
                  THEN CAST(CAST(FLOOR([t0].[weight]) AS BIGINT) AS VARCHAR(max)) + '.' + CAST(CAST(FLOOR((
                    [t0].[weight] - CAST(FLOOR([t0].[weight]) AS BIGINT)
                  ) * 4503599627370496) AS BIGINT) AS VARCHAR(max))
                  WHEN [t0].[weight] > 0
                  THEN 'far'
                  ELSE '-far'
                END IS NULL
                THEN 'n'
                ELSE 'v' + CAST((
                  LEN(
                    'A' + CASE
                      WHEN [t0].[weight] IS NULL
                      THEN CAST(NULL AS VARCHAR(max))
                      WHEN ABS([t0].[weight]) < 9007199254740992
                      THEN CAST(CAST(FLOOR([t0].[weight]) AS BIGINT) AS VARCHAR(max)) + '.' + CAST(CAST(FLOOR((
                        [t0].[weight] - CAST(FLOOR([t0].[weight]) AS BIGINT)
                      ) * 4503599627370496) AS BIGINT) AS VARCHAR(max))
                      WHEN [t0].[weight] > 0
                      THEN 'far'
                      ELSE '-far'
                    END + 'Z'
                  ) - 2
                ) AS VARCHAR(max)) + ':' + CASE
                  WHEN [t0].[weight] IS NULL
                  THEN CAST(NULL AS VARCHAR(max))
                  WHEN ABS([t0].[weight]) < 9007199254740992
                  THEN CAST(CAST(FLOOR([t0].[weight]) AS BIGINT) AS VARCHAR(max)) + '.' + CAST(CAST(FLOOR((
                    [t0].[weight] - CAST(FLOOR([t0].[weight]) AS BIGINT)
                  ) * 4503599627370496) AS BIGINT) AS VARCHAR(max))
                  WHEN [t0].[weight] > 0
                  THEN 'far'
                  ELSE '-far'
                END
              END + CASE
                WHEN CAST([t0].[seen] AS VARCHAR(max)) IS NULL
                THEN 'n'
                ELSE 'v' + CAST((
                  LEN('A' + CAST([t0].[seen] AS VARCHAR(max)) + 'Z') - 2
                ) AS VARCHAR(max)) + ':' + CAST([t0].[seen] AS VARCHAR(max))
              END + CASE
                WHEN CASE
                  WHEN [t0].[ok] IS NULL
                  THEN CAST(NULL AS VARCHAR(max))
                  WHEN [t0].[ok] <> 0
                  THEN 'true'
                  ELSE 'false'
                END IS NULL
                THEN 'n'
                ELSE 'v' + CAST((
                  LEN(
                    'A' + CASE
                      WHEN [t0].[ok] IS NULL
                      THEN CAST(NULL AS VARCHAR(max))
                      WHEN [t0].[ok] <> 0
                      THEN 'true'
                      ELSE 'false'
                    END + 'Z'
                  ) - 2
                ) AS VARCHAR(max)) + ':' + CASE
                  WHEN [t0].[ok] IS NULL
                  THEN CAST(NULL AS VARCHAR(max))
                  WHEN [t0].[ok] <> 0
                  THEN 'true'
                  ELSE 'false'
                END
              END
            ),
            2
          )
        ),
        16
      ) AS [place]
    FROM [joined] AS [t0]
  ) AS [t1]
) AS [t2]
