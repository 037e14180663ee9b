import type { Granted } from '@sluice/admin'
import type { Store } from '@sluice/core'
import { type AdminUnderTest, startAdmin } from '../admin/admin-server.ts'
import { runSluice } from './run-sluice.ts'

/** People by their tokens. */
const people: Readonly<Record<string, Granted>> = {
  'token-of-ops': { actor: 'ada', may: ['read', 'keys', 'policies'] },
  'token-of-support': { actor: 'bob', may: ['read', 'keys'] },
  'token-of-viewer': { actor: 'eve', may: ['read'] },
}

interface WithAuthorization {
  readonly headers: { readonly authorization?: string }
}

interface FleetUnderTest extends AdminUnderTest {
  readonly url: string
  /** Runs `sluice` with the address of the API, as somebody. @default 'ops' */
  sluice(args: readonly string[], as?: 'ops' | 'support' | 'viewer' | 'nobody'): Run
}

type Run = ReturnType<typeof runSluice>

/** Starts an application whose admin API tells people apart by their tokens. */
export async function startFleet(
  options: { readonly store?: Store; readonly file?: string } = {},
): Promise<FleetUnderTest> {
  const authorize = (request: unknown) => {
    const { authorization = '' } = (request as WithAuthorization).headers
    return people[authorization.replace(/^Bearer /, '')]
  }
  const admin = await startAdmin({ ...options, admin: { authorize } })
  const url = `http://127.0.0.1:${admin.port}/limits`
  return {
    ...admin,
    url,
    sluice(args, as = 'ops') {
      const token = as === 'nobody' ? '' : `token-of-${as}`
      return runSluice(args, { env: { SLUICE_ADMIN_URL: url, SLUICE_ADMIN_TOKEN: token } })
    },
  }
}
