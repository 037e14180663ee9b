import type { HandlerRequest } from '@sluice/http'

/** Header that a page of another site cannot send without asking first. */
const customHeader = 'x-sluice-admin'

/**
 * Tells why a request may come from another site; `undefined` if it does not. Command lines send
 * none of these headers but ours.
 */
export function crossSiteProblem(request: HandlerRequest): string | undefined {
  const site = request.header('sec-fetch-site')
  if (site !== undefined && site !== 'same-origin' && site !== 'none') {
    return 'The request comes from another site: its Sec-Fetch-Site is not same-origin.'
  }
  const origin = request.header('origin')
  const host = request.header('host')?.toLowerCase() ?? ''
  if (origin !== undefined && (host === '' || hostOf(origin) !== host)) {
    return 'The Origin is not the Host of the request. If a proxy changes Host, have it pass the one of the client.'
  }
  if (request.method !== 'POST' || (request.header(customHeader) ?? '') !== '') return undefined
  return 'Mutations need the header X-Sluice-Admin: 1.'
}

/** Host and port; `undefined` for an opaque origin. A default port is left out, as browsers do. */
function hostOf(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host.toLowerCase() || undefined : undefined
}
