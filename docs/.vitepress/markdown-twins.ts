import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { resolveLink } from './repository.ts'
import { expandTabs } from './tabs/expand-tabs.ts'

/**
 * Rewrites the built Markdown pages. The plugin keeps the links and blocks of the sources, but
 * writes `start/index.md` as `start.md`, and copies no files of the repository.
 */
export function finishTwins(sources: string, folder: string): void {
  const twins = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .map((file) => file.replaceAll('\\', '/'))
  for (const twin of twins) {
    const page = existsSync(join(sources, twin)) ? twin : twin.replace(/\.md$/, '/index.md')
    const markdown = readFileSync(join(folder, twin), 'utf8')
    const relinked = expandTabs(markdown).replaceAll(
      /\]\((?![/#]|\w+:)([^\s)#]+)/g,
      (_link, href: string) => `](${relink(page, twin, href)}`,
    )
    writeFileSync(join(folder, twin), relinked)
  }
}

function relink(page: string, twin: string, href: string): string {
  const path = posix.join(posix.dirname(page), href)
  if (path.startsWith('../')) return resolveLink(page, href)
  if (!path.endsWith('.md')) return href
  return posix.relative(posix.dirname(twin), path.replace(/\/index\.md$/, '.md'))
}
