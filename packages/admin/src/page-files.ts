import { createHash } from 'node:crypto'
import { gunzipSync } from 'node:zlib'
import type { HandlerRequest, HandlerResponse } from '@sluice/http/adapter'
import { readPage } from './read-page.ts'

const files: ReadonlyMap<string, readonly [name: string, type: string]> = new Map([
  ['/', ['index.html', 'text/html; charset=utf-8']],
  ['/page.css', ['page.css', 'text/css; charset=utf-8']],
  ['/page.js', ['page.js', 'text/javascript; charset=utf-8']],
])

/** The page loads only its own script and styles, calls its own API, and cannot be framed. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ')

interface PageFile {
  readonly packed: Uint8Array
  readonly headers: Readonly<Record<string, string>>
}

const known = new Map<string, PageFile>()

/** Answers with a file of the page; `undefined` for any other path. */
export function pageAnswer(
  request: Pick<HandlerRequest, 'method' | 'path' | 'header'>,
): HandlerResponse | undefined {
  const found = files.get(request.path)
  if (!found || (request.method !== 'GET' && request.method !== 'HEAD')) return undefined
  const { packed, headers } = fileOf(...found)
  if (request.header('if-none-match') === headers.ETag) return { status: 304, headers }
  if (!/\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/.test(request.header('accept-encoding') ?? ''))
    return { status: 200, headers, body: gunzipSync(packed) }
  return { status: 200, headers: { ...headers, 'Content-Encoding': 'gzip' }, body: packed }
}

function fileOf(name: string, type: string): PageFile {
  const read = known.get(name)
  if (read) return read
  const packed = readPage(name)
  const hash = createHash('sha256').update(packed).digest('base64url').slice(0, 22)
  const file: PageFile = {
    packed,
    headers: {
      'Content-Type': type,
      'Content-Security-Policy': policy,
      'Cache-Control': 'no-cache',
      'Cross-Origin-Opener-Policy': 'same-origin',
      ETag: `W/"${hash}"`,
      Vary: 'Accept-Encoding',
    },
  }
  known.set(name, file)
  return file
}
