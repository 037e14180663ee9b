import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

const redisProgram = 'redis-server'
const programs: ChildProcess[] = []
const listeners: Server[] = []
const sockets = new Set<Socket>()

/** Starts an empty Redis on a free port, and returns the port. */
export async function startRedis(): Promise<number> {
  const port = await freePort()
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
  const program = spawn(redisProgram, args, { stdio: 'ignore' })
  programs.push(program)
  let failure: unknown
  program.on('error', (error) => {
    failure = error
  })
  for (let attempt = 0; attempt < 100; attempt += 1) {
    if (failure)
      throw new Error('There is no redis-server: apt install redis-server', { cause: failure })
    if (await answers(port)) return port
    await sleep(100)
  }
  throw new Error(`redis-server does not listen on port ${port}`)
}

/** A way to a server that can be cut, and mended. */
export async function startLink(serverPort: number) {
  const listener = createServer((client) => {
    const server = connect(serverPort, '127.0.0.1')
    for (const socket of [client, server]) {
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        server.destroy()
      })
    }
    client.pipe(server).pipe(client)
  })
  listeners.push(listener)
  const port = await listen(listener, 0)
  return {
    port,
    cut() {
      listener.close()
      for (const socket of sockets) socket.destroy()
    },
    heal: () => listen(listener, port),
  }
}

export async function stopAll(): Promise<void> {
  for (const listener of listeners) listener.close()
  for (const socket of sockets) socket.destroy()
  const running = programs.filter(({ pid, exitCode, signalCode }) => {
    return pid !== undefined && exitCode === null && signalCode === null
  })
  await Promise.all(
    running.map((program) => {
      const ended = once(program, 'exit')
      program.kill()
      return ended
    }),
  )
}

async function listen(listener: Server, port: number): Promise<number> {
  listener.listen(port, '127.0.0.1')
  await once(listener, 'listening')
  const address = listener.address()
  return typeof address === 'object' && address ? address.port : port
}

async function freePort(): Promise<number> {
  const listener = createServer()
  const port = await listen(listener, 0)
  listener.close()
  return port
}

async function answers(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  const isOpen = await once(socket, 'connect').then(
    () => true,
    () => false,
  )
  socket.destroy()
  return isOpen
}
