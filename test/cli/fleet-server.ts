import type { IncomingMessage } from 'node:http'
import type { Granted } from '@sluice/admin'
import type { Store } from '@sluice/core'
import { startAdmin } from '../admin/admin-server.ts'
import { runSluice } from './run-sluice.ts'

const people: Readonly<Record<string, Granted>> = {
  'token-of-ops': { actor: 'ada', may: ['read', 'keys', 'policies'] },
  'token-of-support': { actor: 'bob', may: ['read', 'keys'] },
  'token-of-viewer': { actor: 'eve', may: ['read'] },
}

/** Starts an application whose admin API tells people apart by their tokens. */
export async function startFleet(options: { readonly store?: Store; readonly file?: string } = {}) {
  const authorize = (request: unknown) => {
    const { authorization = '' } = (request as IncomingMessage).headers
    return people[authorization.replace(/^Bearer /, '')]
  }
  const admin = await startAdmin({ ...options, admin: { authorize } })
  const url = `http://127.0.0.1:${admin.port}/limits`
  return {
    ...admin,
    url,
    sluice(args: readonly string[], as: 'ops' | 'support' | 'viewer' | 'nobody' = 'ops') {
      const token = as === 'nobody' ? '' : `token-of-${as}`
      return runSluice(args, { env: { SLUICE_ADMIN_URL: url, SLUICE_ADMIN_TOKEN: token } })
    },
  }
}
