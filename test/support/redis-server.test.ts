import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { describe, expect, it, vi } from 'vitest'
import { findOrInstall } from './programs.ts'
import { startRedis } from './redis-server.ts'
import { sendCommand } from './resp.ts'

describe('startRedis', () => {
  it('starts an empty server without persistence, and answers even where it asks for a password', async () => {
    await using redis = await startRedis({ args: ['--requirepass', 'open sesame'] })
    await expect(redis.cli('PING')).rejects.toThrow(/NOAUTH/)
    await using open = await startRedis()
    expect(await open.cli('DBSIZE')).toBe(0)
    expect(await open.cli('CONFIG', 'GET', 'save')).toEqual(['save', ''])
  })

  it('freezes and goes on, and can be stopped while it is frozen', async () => {
    const redis = await startRedis()
    redis.pause()
    await expect(sendCommand(['PING'], { port: redis.port, timeoutMs: 100 })).rejects.toThrow(
      /timed out/,
    )
    redis.resume()
    expect(await redis.cli('PING')).toBe('PONG')
    redis.pause()
    await redis.stop()
    expect(isAlive(redis.pid)).toBe(false)
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
})

it('a program is refused where its variable names none', () => {
  vi.stubEnv('REDIS_SERVER_BIN', '/no/such/redis')
  expect(() => findOrInstall('redis')).toThrow('REDIS_SERVER_BIN is /no/such/redis')
  vi.unstubAllEnvs()
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
