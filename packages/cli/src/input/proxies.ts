import { errorText } from '@sluice/core'
import { compile } from 'proxy-addr'
import type { LogRequest } from '../formats/log-request.ts'
import { CliError } from '../terminal/exit-codes.ts'

export type ClientAddress = (request: LogRequest) => string | undefined

/**
 * Parses `--trust-proxy`: a number of proxies, or their networks, as in Express's `trust proxy`.
 * Express's own library parses the networks.
 * @throws CliError if it is neither
 */
export function behindProxies(trusted: string): ClientAddress {
  const trust = trustOf(trusted)
  return (request) => {
    const hops = (request.header('x-forwarded-for') ?? '').split(/[\s,]+/).filter(Boolean)
    let address = request.ip
    for (let index = 0; address !== undefined && trust(address, index); index += 1) {
      const before = hops.at(-1 - index)
      if (before === undefined) break
      address = before
    }
    return address
  }
}

function trustOf(trusted: string): (address: string, index: number) => boolean {
  if (/^\d+$/.test(trusted)) return (_, index) => index < Number(trusted)
  try {
    return compile(trusted.split(',').map((part) => part.trim()))
  } catch (cause) {
    throw new CliError(
      `--trust-proxy ${trusted} must be a number of proxies, or networks such as 10.0.0.0/8,loopback: ${errorText(cause)}`,
    )
  }
}
