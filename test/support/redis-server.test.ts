import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { findRedis } from './redis-binary.ts'
import { startRedis } from './redis-server.ts'
import { sendCommand } from './resp.ts'

describe('startRedis', () => {
  it('starts an empty server without persistence that answers commands', async () => {
    await using redis = await startRedis()
    expect(redis.url).toBe(`redis://127.0.0.1:${redis.port}`)
    expect(await redis.cli('DBSIZE')).toBe(0)
    expect(await redis.cli('SET', 'greeting', 'grüß dich')).toBe('OK')
    expect(await redis.cli('GET', 'greeting')).toBe('grüß dich')
    expect(await redis.cli('GET', 'nothing')).toBeNull()
    expect(await redis.cli('CONFIG', 'GET', 'save')).toEqual(['save', ''])
    await expect(redis.cli('GET')).rejects.toThrow(/wrong number of arguments/)
  })

  it('starts many at once on ports of their own', async () => {
    const servers = await Promise.all(Array.from({ length: 4 }, () => startRedis()))
    expect(new Set(servers.map((server) => server.port)).size).toBe(4)
    await Promise.all(servers.map((server) => server.stop()))
  })

  it('passes arguments on, and answers even where it asks for a password', async () => {
    await using redis = await startRedis({ args: ['--requirepass', 'open sesame'] })
    await expect(redis.cli('PING')).rejects.toThrow(/NOAUTH/)
  })

  it('is gone when stop resolves, and can be stopped twice', async () => {
    const redis = await startRedis()
    await redis.stop()
    await redis.stop()
    expect(isAlive(redis.pid)).toBe(false)
    await expect(redis.cli('PING')).rejects.toThrow()
  })

  it('freezes and goes on, and can be stopped while it is frozen', async () => {
    const redis = await startRedis()
    redis.pause()
    await expect(sendCommand(['PING'], { port: redis.port, timeoutMs: 100 })).rejects.toThrow(
      /No reply/,
    )
    redis.resume()
    expect(await redis.cli('PING')).toBe('PONG')
    redis.pause()
    await redis.stop()
    expect(isAlive(redis.pid)).toBe(false)
  })

  it('comes back on the port of a crashed server', async () => {
    const first = await startRedis()
    await first.kill()
    await using second = await startRedis({ port: first.port })
    expect(second.port).toBe(first.port)
    expect(await second.cli('PING')).toBe('PONG')
  })

  it('refuses a port that is taken, and arguments that the server refuses', async () => {
    await using redis = await startRedis()
    await expect(startRedis({ port: redis.port })).rejects.toThrow(/in use/)
    await expect(startRedis({ args: ['--no-such-option', '1'] })).rejects.toThrow(/no-such-option/)
  })

  it('leaves no server behind when its process is killed', async () => {
    const program = `
      import { startRedis } from ${JSON.stringify(import.meta.resolve('./redis-server.ts'))}
      console.log((await startRedis()).pid)
      setInterval(() => undefined, 1000)
    `
    const child = spawn(
      process.execPath,
      ['--import', 'tsx', '--input-type=module', '--eval', program],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    )
    const [line] = await once(createInterface(child.stdout), 'line')
    const pid = Number(line)
    expect(isAlive(pid)).toBe(true)
    child.kill('SIGKILL')
    await expect.poll(() => isAlive(pid), { timeout: 5000 }).toBe(false)
  })

  it('lets a process end that forgot to stop its server', async () => {
    const program = `
      import { startRedis } from ${JSON.stringify(import.meta.resolve('./redis-server.ts'))}
      console.log((await startRedis()).pid)
    `
    const child = spawn(
      process.execPath,
      ['--import', 'tsx', '--input-type=module', '--eval', program],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    )
    const exit = once(child, 'exit')
    const [line] = await once(createInterface(child.stdout), 'line')
    const [code] = await Promise.race([exit, sleep(5000, ['still running'])])
    child.kill()
    expect(code).toBe(0)
    await expect.poll(() => isAlive(Number(line)), { timeout: 5000 }).toBe(false)
  })
})

describe('findRedis', () => {
  it('prefers REDIS_SERVER_BIN and refuses one that is not executable', () => {
    expect(findRedis({ REDIS_SERVER_BIN: process.execPath, PATH: '' })).toBe(process.execPath)
    expect(() => findRedis({ REDIS_SERVER_BIN: '/no/such/redis' })).toThrow(/REDIS_SERVER_BIN/)
  })

  it('finds nothing on an empty PATH', () => {
    expect(findRedis({ PATH: '' })).toBeUndefined()
  })
})

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    // No such process.
    return false
  }
}
