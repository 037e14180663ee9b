import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeEach, describe, expect } from 'vitest'
import { it } from '../support/redis-test.ts'
import { sendCommand } from '../support/resp.ts'
import { until } from '../support/until.ts'
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts'
import { monotonicMs } from './timing.ts'

let proxy: TcpProxy

it.beforeAll(async ({ redis }) => {
  proxy = await startTcpProxy(redis.port)
})

afterAll(() => proxy.close())

beforeEach(() => proxy.disturb({}))

/** A connection, and the first that it gets for a command. */
async function open(command = 'PING') {
  const socket = connect(proxy.port, '127.0.0.1').on('error', () => undefined)
  await once(socket, 'connect')
  socket.write(`${command}\r\n`)
  return { socket, first: once(socket, 'data').then(([chunk]) => String(chunk)) }
}

describe('the proxy', () => {
  it.each([{ requestDelayMs: 60 }, { replyDelayMs: 60 }, { stall: { every: 1, forMs: 60 } }])(
    'holds back %j',
    async (disturbance) => {
      proxy.disturb(disturbance)
      const startedAt = monotonicMs()
      expect(await sendCommand(['PING'], { port: proxy.port })).toBe('PONG')
      expect(monotonicMs() - startedAt).toBeGreaterThanOrEqual(58)
      await until('no connection is left', () => proxy.connections === 0)
    },
  )

  it('keeps delayed data in order, also when the delay ends', async () => {
    proxy.disturb({ replyDelayMs: 80 })
    const { socket } = await open('ECHO first')
    let received = ''
    socket.on('data', (chunk) => {
      received += chunk
    })
    await until('it is connected', () => proxy.connections === 1)
    // The first reply is held; then nothing is held any more.
    socket.write('ECHO second\r\n')
    proxy.disturb({})
    await until('both replies', () => received.includes('second'))
    expect(received).toMatch(/first[\s\S]*second/)
    socket.destroy()
  })

  it('ends a connection in the middle of a reply, or resets all', async () => {
    const { socket, first } = await open()
    await first
    const failed = once(socket, 'error')
    proxy.reset()
    // `once` rejects with what an 'error' event carries, unless that is what is waited for.
    expect((await failed)[0]).toMatchObject({ code: 'ECONNRESET' })

    proxy.disturb({ cutEvery: 1 })
    const cut = await open()
    expect(await cut.first).toBe('+PON')
    if (!cut.socket.closed) await once(cut.socket, 'close')
  })
})
