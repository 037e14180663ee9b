import { type Finding, found } from './finding.ts'
import { type RedisLink, reasonOf, TimedOut } from './redis-link.ts'

const check = found('connection')

export async function connection(link: RedisLink): Promise<Finding> {
  const startedAt = performance.now()
  try {
    await link.inTime('a connection', link.client.connect())
    // Any reply proves a connection; permissions are checked later.
    await link.ask('PING').catch((error: unknown) => {
      if (error instanceof TimedOut || /NOAUTH|WRONGPASS/.test(reasonOf(error))) throw error
      if (link.client.status !== 'ready') throw error
    })
  } catch (error) {
    return failed(link, error)
  }
  const ms = Math.round(performance.now() - startedAt)
  const tls = link.address.startsWith('rediss:') ? ', with TLS' : ''
  return check.ok(`${link.address} answered after ${ms} ms${tls}`)
}

const failures: readonly (readonly [pattern: RegExp, fix: string])[] = [
  [
    /NOAUTH|WRONGPASS|invalid password|without any password|AUTH failed/i,
    'set REDIS_URL to redis://USER:PASSWORD@HOST:PORT with the user and password of this server',
  ],
  [
    /self.signed|unable to verify|unable to get (?:local )?issuer/i,
    'make Node trust the certificate authority: NODE_EXTRA_CA_CERTS=ca.pem',
  ],
  [/certificate has expired/i, 'renew the certificate of the server'],
  [/does not match certificate|Hostname\/IP/i, 'use the host name that is in the certificate'],
  [
    /wrong version number|packet length too long|SSL routines|EPROTO/i,
    'the port does not use TLS: use redis:// instead of rediss://',
  ],
  [
    /ENOTFOUND|EAI_AGAIN/,
    'correct the host name in REDIS_URL, and check that this machine can resolve it',
  ],
  [
    /ECONNREFUSED/,
    'check that Redis is running, listens at this address (bind, protected-mode), and that the port is right',
  ],
  [/DENIED|protected mode/i, 'set a password on the server, or connect from the machine itself'],
  [/max number of clients/i, 'raise maxclients, or find the application that leaks connections'],
  [/LOADING|MASTERDOWN/, 'wait until the server has loaded its data, or connect to the master'],
]

function failed(link: RedisLink, error: unknown): Finding {
  const why = [error, link.lastError].filter((each) => each !== undefined).map(reasonOf)
  const text = [...new Set(why)].join('; ')
  const known = failures.find(([pattern]) => pattern.test(text))
  const fix = known?.[1] ?? (error instanceof TimedOut ? silent(link) : unknown)
  return check.error(`${link.address} cannot be used: ${text}`, fix)
}

const unknown = 'check the address, the protocol (redis://, or rediss:// for TLS) and the network'

/** A server that accepts a connection but stays silent may expect another protocol. */
function silent({ address }: RedisLink): string {
  const otherwise = address.startsWith('rediss:')
    ? 'if the port does not use TLS, use redis:// instead of rediss://; otherwise '
    : ''
  return `${otherwise}the server, or a firewall in between, accepts connections but stays silent: check whether it is stopped, swapping, or running a slow command (redis-cli SLOWLOG GET)`
}
