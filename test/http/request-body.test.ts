import { PassThrough } from 'node:stream'
import { type HttpRequest, readBody } from '@sluice/http'
import { describe, expect, it } from 'vitest'
import { NodeContext } from '../../examples/node-http-adapter/rate-limit.ts'

function requestOf(stream: PassThrough, type?: string): HttpRequest {
  return {
    ...{ method: 'POST', path: '/', route: undefined, ip: undefined },
    header: (name) => (name === 'content-type' ? type : undefined),
    content: { url: '/', parsed: undefined, stream },
  }
}

function read(sent: string | Buffer, type = 'application/json') {
  const stream = new PassThrough()
  stream.end(sent)
  return readBody(requestOf(stream, type), 10, 60_000)
}

it('the content of a request of Node has its path and query, as they were sent', () => {
  const { content } = new NodeContext({ url: '/a?b', body: 1 } as never, {} as never)
  expect(content).toMatchObject({ url: '/a?b', parsed: 1 })
})

describe('readBody', () => {
  it('gives up a body that does not come in time', async () => {
    const stream = new PassThrough()
    stream.write('{"key":')
    await expect(readBody(requestOf(stream), 1_000, 5)).rejects.toThrow(/within 5 ms/)
    expect(stream.listenerCount('data')).toBe(0)
  })

  it('changes no byte of one that is not UTF-8', async () => {
    const bytes = Buffer.from([0x22, 0xe9, 0x22])
    expect(await read(bytes)).toEqual({ outcome: 'malformed' })
    const base64 = { outcome: 'read', value: bytes.toString('base64'), encoding: 'base64' }
    expect(await read(bytes, 'text/plain')).toEqual(base64)
    expect(await read('\uFEFFé 😀', 'text/plain')).toEqual({ outcome: 'read', value: '\uFEFFé 😀' })
  })
})
