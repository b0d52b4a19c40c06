-- Report for wrk: prints requests, microseconds, p99 in microseconds, failed requests.
function done(summary, latency)
  local e = summary.errors
  print(("report %d %d %.0f %d"):format(summary.requests, summary.duration,
    latency:percentile(99), e.connect + e.read + e.write + e.status + e.timeout))
end
