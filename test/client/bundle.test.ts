import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { readText } from '../support/workspace.ts'
import { bundleForPages } from './bundle.ts'

/** As docs/clients.md has them. The parser of structured fields is 2,000 of them. */
const maxBytes = { fetch: 11_900, waitFor: 1800 }

describe('the client in a page', () => {
  it('is a script of a few kilobytes, compressed, that needs nothing of Node', async () => {
    const all = await bundleForPages()
    expect(Buffer.from(all).toString()).not.toMatch(/node:|\brequire\(|\bprocess\.|\bBuffer\b/)
    const fetchOnly = gzipSync(await bundleForPages('{ createFetch }')).length
    expect(fetchOnly).toBeLessThanOrEqual(maxBytes.fetch)
    expect(gzipSync(all).length - fetchOnly).toBeLessThanOrEqual(maxBytes.waitFor)
  })

  it('is as large as the docs say', () => {
    const [fetch, waitFor] = [maxBytes.fetch, maxBytes.waitFor].map((n) => n.toLocaleString('en'))
    expect(readText('docs/clients.md')).toContain(
      `at most ${fetch} bytes, minified and compressed, and \`waitFor\` adds ${waitFor}.`,
    )
  })
})
