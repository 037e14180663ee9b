import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { bundleForPages } from './bundle.ts'

describe('the client in a page', () => {
  it('is a script of a few kilobytes, compressed, that needs nothing of Node', async () => {
    const script = await bundleForPages()
    const compressed = gzipSync(script).length
    // 9.6 KB when this was written, a quarter of it the parser of structured fields.
    expect(compressed).toBeLessThan(11_000)
    expect(Buffer.from(script).toString()).not.toMatch(/node:|\brequire\(|\bprocess\.|\bBuffer\b/)
  })
})
