import { type ErrorCode, isSluiceError, SluiceError } from '@sluice/core'

interface KnownFailure {
  readonly code: ErrorCode
  /** Pattern of the client's error. */
  readonly pattern: RegExp
  readonly fix: string
}

/** Errors of Redis and its clients, each with its fix. */
const knownFailures: readonly KnownFailure[] = [
  {
    code: 'SLUICE_REDIS_AUTH',
    pattern: /\b(NOAUTH|WRONGPASS)\b|^DENIED|invalid password|Client sent AUTH/i,
    fix: 'give the client the username and password of this Redis',
  },
  {
    code: 'SLUICE_REDIS_PERMISSION',
    pattern: /\bNOPERM\b|unknown command/i,
    fix: 'let the user run EVALSHA, EVAL, TIME and the commands of the script on keys of the prefix: ACL SETUSER … ~sluice:* +@all',
  },
  {
    code: 'SLUICE_REDIS_READONLY',
    pattern: /\bREADONLY\b|can't write against a read only replica/i,
    fix: 'connect to the master, through Sentinel if it moves',
  },
  {
    code: 'SLUICE_REDIS_MEMORY',
    pattern: /\bOOM\b|used memory > 'maxmemory'/,
    fix: 'raise maxmemory, or choose a maxmemory-policy that evicts',
  },
  {
    code: 'SLUICE_REDIS_BUSY',
    pattern:
      /\b(LOADING|BUSY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|MISCONF|NOREPLICAS)\b|max number of clients/,
    fix: 'it answers again when it has loaded its data, ended its script, chosen a master or can write again',
  },
  {
    code: 'SLUICE_STORE_CHECK',
    pattern: /^WRONGTYPE|user_script/,
    fix: 'other checks are decided',
  },
  {
    code: 'SLUICE_REDIS_CONNECTION',
    pattern:
      /\b(fetch|NetworkError|ECONN\w+|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH)\b|clos|connect|offline|Socket|stream isn't|timed? ?out|max retries|redirections|sentinels? |startup nodes|slots cache|Protocol error/i,
    fix: 'see that Redis runs, and that the address, the protocol (TLS or not) and the network are right',
  },
]

/**
 * Turns the error of a client into one that names the fix.
 * @param last the last error of its connection: why it is lost
 */
export function storeFailure(error: unknown, last?: Error): SluiceError {
  if (isSluiceError(error)) return error
  const failure = describe('Redis did not decide', error)
  if (!last || failure.code !== 'SLUICE_REDIS_CONNECTION') return failure
  const { code, cause, message } = lastFailure(last)
  return new SluiceError(code, `Redis did not decide: ${reasonOf(error)}; ${message}`, { cause })
}

/** The likely reason why a client does not answer: the last error of its connection. */
export function lastFailure(last: Error): SluiceError {
  return describe('its client reports', last)
}

function describe(what: string, error: unknown): SluiceError {
  const reason = reasonOf(error)
  const known = knownFailures.find(({ pattern }) => pattern.test(reason))
  const message = `${what}: ${reason}${known ? `; ${known.fix}` : ''}`
  return new SluiceError(known?.code ?? 'SLUICE_STORE_FAILED', message, { cause: causeOf(error) })
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'no reason given'
  // A Cluster of ioredis tells apart that it found no node, and why.
  const node = 'lastNodeError' in error ? ` ${reasonOf(error.lastNodeError)}` : ''
  // The fetch of Node says in its cause alone why it failed.
  const why = error.message === 'fetch failed' ? ` (${reasonOf(error.cause)})` : ''
  if (error.message !== '') return withoutSecrets(error.message) + node + why
  // After several addresses failed, as for localhost.
  if ('code' in error && typeof error.code === 'string') return error.code
  // Errors of node-redis say by their class alone that a command was not answered in time.
  return error.name === 'Error' ? error.constructor.name : error.name
}

/** Leaves out arguments of an unknown command, which may be identities, and passwords of URLs. */
function withoutSecrets(text: string): string {
  return text.replace(/,? with args beginning with:.*/s, '').replace(/\/\/[^\s/@]*@/g, '//…@')
}

/** Copies an error without its command, which has keys, or a password: it goes to logs. */
function causeOf(error: unknown): unknown {
  if (!(error instanceof Error)) return undefined
  const cause = new Error(withoutSecrets(error.message))
  cause.name = error.name
  if (error.stack !== undefined) cause.stack = withoutSecrets(error.stack)
  return 'code' in error && typeof error.code === 'string'
    ? Object.assign(cause, { code: error.code })
    : cause
}
