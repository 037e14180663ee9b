import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
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

async function open(): Promise<Socket> {
  const socket = connect(proxy.port, '127.0.0.1').on('error', () => undefined)
  await once(socket, 'connect')
  return socket
}

async function ping(socket: Socket): Promise<string> {
  socket.write('PING\r\n')
  const [chunk] = await once(socket, 'data')
  return String(chunk)
}

describe('the proxy', () => {
  it('carries commands and replies', async () => {
    expect(await sendCommand(['PING'], { port: proxy.port })).toBe('PONG')
    await until('no connection is left', () => proxy.connections === 0)
  })

  it.each([{ requestDelayMs: 60 }, { replyDelayMs: 60 }, { stall: { every: 1, forMs: 60 } }])(
    'holds back %j',
    async (disturbance) => {
      proxy.disturb(disturbance)
      const startedAt = monotonicMs()
      await sendCommand(['PING'], { port: proxy.port })
      expect(monotonicMs() - startedAt).toBeGreaterThanOrEqual(58)
    },
  )

  it('keeps what it holds back in order, also when it stops holding back', async () => {
    proxy.disturb({ replyDelayMs: 80 })
    const socket = await open()
    let received = ''
    socket.on('data', (chunk) => {
      received += chunk
    })
    socket.write('ECHO first\r\n')
    // The second reply comes long after the first, which is held; then nothing is held any more.
    await until('it is connected', () => proxy.connections === 1)
    socket.write('ECHO second\r\n')
    proxy.disturb({})
    await until('both replies', () => received.includes('second'))
    expect(received).toMatch(/first[\s\S]*second/)
    socket.destroy()
  })

  it('ends a connection in the middle of a reply', async () => {
    proxy.disturb({ cutEvery: 1 })
    const socket = await open()
    expect(await ping(socket)).toBe('+PON')
    if (!socket.closed) await once(socket, 'close')
  })

  it('resets all connections', async () => {
    const socket = await open()
    await ping(socket)
    const failed = once(socket, 'error')
    proxy.reset()
    // `once` rejects with what an 'error' event carries, unless that is what is waited for.
    expect((await failed)[0]).toMatchObject({ code: 'ECONNRESET' })
  })

  it('refuses connections, and accepts them again on its port', async () => {
    const { port } = proxy
    await proxy.refuse()
    await expect(sendCommand(['PING'], { port })).rejects.toThrow(/ECONNREFUSED/)
    await proxy.accept()
    expect(await sendCommand(['PING'], { port })).toBe('PONG')
  })
})
