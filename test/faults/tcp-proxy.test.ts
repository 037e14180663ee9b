import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../support/redis-server.ts'
import { sendCommand } from '../support/resp.ts'
import { until } from '../support/until.ts'
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts'
import { monotonicMs } from './timing.ts'

let redis: RedisServer
let proxy: TcpProxy

beforeAll(async () => {
  redis = await startRedis()
  proxy = await startTcpProxy(redis.port)
})

afterAll(async () => {
  await proxy.close()
  await redis.stop()
})

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
    await until('no connection is left', () => proxy.connections === 0, { timeoutMs: 1_000 })
  })

  it('holds back what clients send, and what the server sends', async () => {
    proxy.disturb({ requestDelayMs: 60, replyDelayMs: 60 })
    const startedAt = monotonicMs()
    await sendCommand(['PING'], { port: proxy.port })
    expect(monotonicMs() - startedAt).toBeGreaterThanOrEqual(118)
  })

  it('keeps what it holds back in order, also when it stops holding back', async () => {
    proxy.disturb({ replyDelayMs: 80 })
    const socket = await open()
    let received = ''
    socket.on('data', (chunk) => {
      received += chunk
    })
    socket.write('ECHO first\r\n')
    // The second reply comes long after the first, which is held; then nothing is held any more.
    await until('it is connected', () => proxy.connections === 1, { timeoutMs: 1_000 })
    socket.write('ECHO second\r\n')
    proxy.disturb({})
    await until('both replies', () => received.includes('second'), { timeoutMs: 2_000 })
    expect(received).toMatch(/first[\s\S]*second/)
    socket.destroy()
  })

  it('stalls every n-th reply, and what follows it', async () => {
    proxy.disturb({ stall: { every: 2, forMs: 100 } })
    const socket = await open()
    await ping(socket)
    const startedAt = monotonicMs()
    await ping(socket)
    expect(monotonicMs() - startedAt).toBeGreaterThanOrEqual(98)
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
