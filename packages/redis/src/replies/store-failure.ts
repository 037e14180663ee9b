import { type ErrorCode, errorText, isSluiceError, SluiceError } from '@sluice/core'

interface KnownFailure {
  readonly code: ErrorCode
  /** Matches the client's error. */
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
    fix: 'allow the user EVALSHA, EVAL, TIME and the commands of the script on keys with the prefix: ACL SETUSER … ~sluice:* +@all',
  },
  {
    code: 'SLUICE_REDIS_READONLY',
    pattern: /\bREADONLY\b|can't write against a read only replica/i,
    fix: 'connect to the master (through Sentinel, if there are failovers)',
  },
  {
    code: 'SLUICE_REDIS_MEMORY',
    pattern: /\bOOM\b|used memory > 'maxmemory'/,
    fix: 'raise maxmemory, or use a maxmemory-policy that evicts',
  },
  {
    code: 'SLUICE_REDIS_BUSY',
    pattern:
      /\b(LOADING|BUSY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|MISCONF|NOREPLICAS)\b|max number of clients/,
    fix: 'this is temporary: Redis is loading data, running a script, electing a master or unable to write',
  },
  {
    code: 'SLUICE_STORE_CHECK',
    pattern: /^WRONGTYPE|user_script/,
    fix: 'other checks are not affected',
  },
  {
    code: 'SLUICE_REDIS_CONNECTION',
    pattern:
      /\b(fetch|NetworkError|ECONN\w+|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH)\b|clos|connect|offline|Socket|stream isn't|timed? ?out|max retries|redirections|sentinels? |startup nodes|slots cache|Protocol error/i,
    fix: 'check that Redis is running, and that the address, protocol (TLS or not) and network are right',
  },
]

/**
 * Turns the error of a client into one that names the fix.
 * @param last the last error of the client's connection
 */
export function storeFailure(error: unknown, last?: Error): SluiceError {
  if (isSluiceError(error)) return error
  const failure = describe('Redis call failed', error)
  if (!last || failure.code !== 'SLUICE_REDIS_CONNECTION') return failure
  const { code, cause, message } = lastFailure(last)
  return new SluiceError(code, `Redis call failed: ${reasonOf(error)}; ${message}`, { cause })
}

/** The likely reason why a client does not answer: the last error of its connection. */
export function lastFailure(last: Error): SluiceError {
  return describe('last error of the client', last)
}

function describe(what: string, error: unknown): SluiceError {
  const reason = reasonOf(error)
  const known = knownFailures.find(({ pattern }) => pattern.test(reason))
  const message = `${what}: ${reason}${known ? `; ${known.fix}` : ''}`
  return new SluiceError(known?.code ?? 'SLUICE_STORE_FAILED', message, { cause: causeOf(error) })
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return withoutSecrets(errorText(error ?? 'no reason given'))
  // An ioredis Cluster reports separately that it found no node, and why.
  const node = 'lastNodeError' in error ? ` ${reasonOf(error.lastNodeError)}` : ''
  // Node's fetch gives the reason only in `cause`.
  const why = error.message === 'fetch failed' ? ` (${reasonOf(error.cause)})` : ''
  if (error.message !== '') return withoutSecrets(error.message) + node + why
  // Several addresses failed, as with localhost.
  if ('code' in error && typeof error.code === 'string') return error.code
  // Timeout errors of node-redis are recognisable only by their class.
  return error.name === 'Error' ? error.constructor.name : error.name
}

/** Removes passwords in URLs, and arguments of unknown commands, which may be identities. */
function withoutSecrets(text: string): string {
  return text.replace(/,? with args beginning with:.*/s, '').replace(/\/\/[^\s/@]*@/g, '//…@')
}

/** Copies an error for logs, without its command, which may contain keys or a password. */
function causeOf(error: unknown): unknown {
  if (!(error instanceof Error)) return undefined
  const cause = new Error(withoutSecrets(error.message))
  cause.name = error.name
  if (error.stack !== undefined) cause.stack = withoutSecrets(error.stack)
  return 'code' in error && typeof error.code === 'string'
    ? Object.assign(cause, { code: error.code })
    : cause
}
