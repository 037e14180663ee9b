import { type ErrorCode, SluiceError } from '@sluice/core'

interface KnownFailure {
  readonly code: ErrorCode
  /** What the error of the client says. */
  readonly pattern: RegExp
  readonly fix: string
}

/** What Redis and its clients say when they do not decide, and what can be done about it. */
const knownFailures: readonly KnownFailure[] = [
  {
    code: 'SLUICE_REDIS_AUTH',
    pattern: /^(NOAUTH|WRONGPASS)|invalid password|Client sent AUTH/i,
    fix: 'give the client the username and password of this Redis',
  },
  {
    code: 'SLUICE_REDIS_PERMISSION',
    pattern: /^NOPERM/,
    fix: 'let the user run EVALSHA, EVAL and the commands of the script on keys of the prefix: ACL SETUSER … ~sluice:* +@all',
  },
  {
    code: 'SLUICE_REDIS_READONLY',
    pattern: /^READONLY|can't write against a read only replica/i,
    fix: 'connect to the master, through Sentinel if it moves',
  },
  {
    code: 'SLUICE_REDIS_MEMORY',
    pattern: /^OOM|used memory > 'maxmemory'/,
    fix: 'raise maxmemory, or choose a maxmemory-policy that evicts',
  },
  {
    code: 'SLUICE_REDIS_BUSY',
    pattern: /^(LOADING|BUSY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN)/,
    fix: 'it answers again when it has loaded its data, ended its script or chosen a master',
  },
  {
    code: 'SLUICE_REDIS_CONNECTION',
    pattern:
      /ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|ENOTFOUND|EHOSTUNREACH|closed|Connection is|Socket|max retries|disconnect/i,
    fix: 'see that Redis runs, and that the address and the network are right',
  },
]

/** The error of a client as one that says what to do. */
export function storeFailure(error: unknown): SluiceError {
  if (error instanceof SluiceError) return error
  const reason = error instanceof Error ? error.message : 'no reason given'
  const known = knownFailures.find(({ pattern }) => pattern.test(reason))
  const message = `Redis did not decide: ${reason}${known ? `; ${known.fix}` : ''}`
  return new SluiceError(known?.code ?? 'SLUICE_STORE_FAILED', message, { cause: error })
}
