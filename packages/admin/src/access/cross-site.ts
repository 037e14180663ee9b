import type { HandlerRequest } from '@sluice/http'

/** A header that a page of another site cannot send without a preflight. */
const customHeader = 'x-sluice-admin'

/**
 * Returns why a request may come from another site; `undefined` if it does not. Command-line tools
 * send only our header.
 */
export function crossSiteProblem(request: HandlerRequest): string | undefined {
  const site = request.header('sec-fetch-site')
  if (site !== undefined && site !== 'same-origin' && site !== 'none') {
    return 'The request comes from another site: its Sec-Fetch-Site is not same-origin.'
  }
  const origin = request.header('origin')
  const host = request.header('host')?.toLowerCase() ?? ''
  if (origin !== undefined && (host === '' || hostOf(origin) !== host)) {
    return 'Origin does not match Host. If a proxy changes Host, make it forward the original one.'
  }
  if (request.method !== 'POST' || (request.header(customHeader) ?? '') !== '') return undefined
  return 'Mutations need the header X-Sluice-Admin: 1.'
}

/** Host and port, without a default port, as in browsers; `undefined` for an opaque origin. */
function hostOf(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host.toLowerCase() || undefined : undefined
}
