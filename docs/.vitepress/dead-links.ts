import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'

/**
 * Throws an error that lists each link of the built site to a page, an anchor or a picture that is not there.
 * @param base path of the site, with a slash at both ends
 */
export function findDeadLinks(folder: string, base: string): void {
  const pages = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.html'))
    .map((file) => file.replaceAll('\\', '/'))
  const anchors = new Map<string, Set<string>>()
  const links = pages.flatMap((page) => {
    const html = readFileSync(join(folder, page), 'utf8')
    anchors.set(page, new Set(valuesOf(html, /\sid="([^"]+)"/g)))
    return valuesOf(html, /<(?:a|img|source)\s[^>]*?(?:href|src|srcset)="([^"]*)"/g)
      .filter((link) => !/^[a-z]+:/.test(link))
      .map((link) => ({ page, link }))
  })
  const dead = links.filter(({ page, link }) => {
    const { pathname, hash } = new URL(link, `http://site${base}${page}`)
    if (!pathname.startsWith(base)) return true
    const path = decodeURIComponent(pathname).slice(base.length)
    const target = path === '' || path.endsWith('/') ? `${path}index.html` : path
    const ids = anchors.get(target)
    if (!ids) return !existsSync(join(folder, target))
    return hash !== '' && !ids.has(decodeURIComponent(hash.slice(1)))
  })
  if (dead.length > 0) {
    const listed = [...new Set(dead.map(({ page, link }) => `${posix.normalize(page)}: ${link}`))]
    throw new Error(`dead links:\n${listed.join('\n')}`)
  }
  console.log(`${pages.length} pages, ${links.length} links, none dead`)
}

function valuesOf(html: string, pattern: RegExp): string[] {
  return [...html.matchAll(pattern)].map(([, value = '']) => value.replaceAll('&amp;', '&'))
}
