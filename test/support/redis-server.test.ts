import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { expect, it } from 'vitest'
import { startRedis } from './redis-server.ts'

it('a server that is frozen can be stopped, and one whose process is killed is not left behind', async () => {
  const redis = await startRedis()
  redis.pause()
  await redis.stop()
  expect(isAlive(redis.pid)).toBe(false)

  const program = `
    import { startRedis } from ${JSON.stringify(import.meta.resolve('./redis-server.ts'))}
    console.log((await startRedis()).pid)
    setInterval(() => undefined, 1000)`
  const args = ['--import', 'tsx', '--input-type=module', '--eval', program]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = await once(createInterface(child.stdout), 'line')
  expect(isAlive(Number(line))).toBe(true)
  child.kill('SIGKILL')
  await expect.poll(() => isAlive(Number(line)), { timeout: 5000 }).toBe(false)
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
