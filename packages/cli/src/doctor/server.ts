import { type Finding, found } from './finding.ts'
import type { ServerInfo } from './server-info.ts'

/** The oldest version of Redis whose scripts Sluice can use. */
const oldest = [6, 2] as const

export function version(info: ServerInfo): Finding {
  const check = found('version')
  const valkey = info.text('valkey_version')
  if (valkey !== undefined) return check.ok(`Valkey ${valkey}`)
  const redis = info.text('redis_version')
  if (redis === undefined) return check.note('the server does not report its version')
  const [major = 0, minor = 0] = redis.split('.').map(Number)
  const isOld = major < oldest[0] || (major === oldest[0] && minor < oldest[1])
  if (!isOld) return check.ok(`Redis ${redis}`)
  return check.error(
    `Redis ${redis}, and Sluice needs Redis ${oldest.join('.')} or later, or Valkey`,
    'upgrade the server',
  )
}

export function role(info: ServerInfo): Finding {
  const check = found('role')
  if (info.text('role') === 'slave') {
    const master = `${info.text('master_host')}:${info.text('master_port')}`
    const broken = info.text('master_link_status') === 'down' ? ', and has lost it' : ''
    return check.error(
      `a replica of ${master}${broken}: it accepts no writes, so every check fails with READONLY`,
      'connect to the master, through Sentinel or a Cluster client if there are failovers',
    )
  }
  const replicas = info.number('connected_slaves') ?? 0
  return check.ok(`a master with ${replicas} replica${replicas === 1 ? '' : 's'}`)
}

export function persistence(info: ServerInfo): Finding {
  const check = found('persistence')
  const failed = [
    ['rdb_last_bgsave_status', 'the last snapshot (RDB)'],
    ['aof_last_write_status', 'the last write to the log (AOF)'],
    ['aof_last_bgrewrite_status', 'the last rewrite of the log (AOF)'],
  ].find(([name = '']) => info.text(name) === 'err')
  if (failed) {
    return check.warning(
      `${failed[1]} failed: Redis may refuse every write with MISCONF`,
      'free disk space, and check the server log; with stop-writes-on-bgsave-error no, writes continue',
    )
  }
  if (info.text('aof_enabled') === '1') return check.ok('AOF is on: a restart keeps counts')
  const saved = info.number('rdb_last_save_time') ?? 0
  const started =
    (info.number('server_time_usec') ?? 0) / 1e6 - (info.number('uptime_in_seconds') ?? 0)
  if (saved > started + 1) {
    return check.ok('snapshots (RDB): a restart loses the counts since the last one')
  }
  return check.note(
    'no AOF, and no snapshot yet: a restart loses all counts',
    'for quotas of a day or a month, set appendonly yes',
  )
}

/** Share of `maxclients` at which new connections are at risk. */
const fullShare = 0.8

export function connections(info: ServerInfo): Finding {
  const check = found('connections')
  const now = info.number('connected_clients')
  const max = info.number('maxclients')
  if (now === undefined || max === undefined) return check.note('the server does not report it')
  const refused = info.number('rejected_connections') ?? 0
  const seen = `${now} of ${max} connections${refused > 0 ? `; ${refused} were refused since the start` : ''}`
  if (now < max * fullShare && refused === 0) return check.ok(seen)
  return check.warning(
    seen,
    'raise maxclients, or find the application that opens a client per request',
  )
}
