"""Questions as people type them into a chat, by language: with English terms in them, and some without accents."""

from __future__ import annotations

from typing import Final

QUESTIONS: Final[dict[str, str]] = {
    "en": """
how do I clear the cache?
uv cache directory
does anyone know why pip install fails on windows
getting "connection refused" after the update, any ideas?
where is the config file
can't log in since this morning
how to use a custom index with uv pip install
docker compose up hangs forever
I get ImportError: cannot import name foo from bar
is there a way to pin the python version
thanks, that worked!
what does --frozen do?
how do I set up a Blueprint in flask
error 403 when uploading files
can I use el-get or le petit with this?
naïve question: can the café plugin run on arm64?
the Japanese docs (日本語) are outdated, where can I report that?
why is "request.files" empty
no module named yaml
use proxy env var?
how come my lockfile changes every time
anyone got cors working behind nginx
uninstall completely?
my session cookie is not set, what am i missing
wheel build error ninja not found
does it support ipv6
Request entity too large
best practice for blueprints + sqlalchemy?
""",
    "de": """
wie kann ich den cache löschen?
wie loesche ich den cache
warum funktioniert pip install unter windows nicht
ich bekomme beim docker compose up immer connection refused
wo liegt die config datei
kann ich die python version pinnen?
uv sync schlägt mit einem timeout fehl, was tun?
gibt es einen dark mode
mein build failed seit dem letzten update
was macht die option --frozen
wie setze ich env variablen für den container
geht das auch mit python 3.12?
hat jemand eine idee warum der upload abbricht
Flask findet meine templates nicht
muss ich nach dem update neu starten
wie kann man file upload limit in flask aendern
danke, hat geklappt!
kann mir jemand bei dem login problem helfen
mein container startet nicht mehr, jemand ne ahnung?
kriege permission denied beim schreiben ins volume
Unterstützt ihr IPv6?
Wo finde ich die Logs?
hat sich erledigt danke
brauche ich dafür root rechte
session cookie wird nicht gesetzt, was fehlt mir
fehlermeldung beim start: address already in use
""",
    "es": """
¿cómo puedo borrar la caché?
como borro la cache de uv
no me funciona pip install en windows
por qué me sale connection refused al hacer docker compose up
donde esta el archivo de config
se puede fijar la version de python?
hay alguna forma de usar un proxy con el cliente
el build falla desde la última actualización
qué hace la opción --frozen
como configuro variables de entorno en el container
alguien sabe por que flask no encuentra mis templates
me da error 403 cuando subo un archivo
tengo un problema con el login
necesito ayuda con el deploy
gracias, ya funciona
¿puedo usar esto con python 3.12?
mi contenedor no arranca, alguna idea?
me sale permission denied al escribir en el volumen
soporta ipv6?
donde veo los logs
la cookie de session no se guarda, que me falta
cómo actualizo a la última versión sin perder datos
""",
    "fr": """
comment vider le cache ?
comment je peux supprimer le cache de uv
pip install ne marche pas sous windows
pourquoi j'ai connection refused avec docker compose up
ou se trouve le fichier de config
est-ce qu'on peut figer la version de python
y a-t-il un mode sombre
le build échoue depuis la dernière mise à jour
que fait l'option --frozen
comment definir des variables d'environnement dans le container
flask ne trouve pas mes templates, une idée ?
j'ai une erreur 403 quand j'upload un fichier
quelqu'un sait comment utiliser un proxy
c'est possible avec python 3.12 ?
merci ça marche
besoin d'aide pour le deploy svp
mon container ne demarre plus, une idee ?
j'ai permission denied quand j'ecris dans le volume
vous supportez ipv6 ?
où sont les logs
le cookie de session n'est pas enregistré
faut-il les droits root pour ça
""",
    "pt": """
como limpar o cache?
como eu limpo o cache do uv
o pip install não funciona no windows
por que dá connection refused quando rodo docker compose up
onde fica o arquivo de config
da pra fixar a versao do python?
existe alguma forma de usar um proxy com o cliente
o build falha desde a última atualização
o que faz a opção --frozen
como configuro as variaveis de ambiente no container
alguém sabe por que o flask não acha meus templates
estou recebendo erro 403 ao fazer upload de um arquivo
tenho um problema com o login
preciso de ajuda com o deploy
obrigado, funcionou
posso usar isso com python 3.12?
meu container não sobe mais, alguma ideia?
dá permission denied ao gravar no volume
vocês suportam ipv6?
onde eu vejo os logs
o cookie de sessao nao é salvo, o que ta faltando
precisa de root pra isso?
""",
    "ru": """
как очистить кэш?
как очистить кеш uv cache clean не помогает
почему pip install не работает на windows
выдаёт connection refused при docker compose up
где лежит config файл
можно ли зафиксировать версию python
есть ли тёмная тема
после обновления build падает с timeout
что делает опция --frozen
flask не находит templates, что делать?
ошибка 403 при загрузке файла
кто-нибудь знает, как настроить proxy для uv pip install
спасибо, заработало
помогите с deploy на kubernetes
uv sync не видит pyproject.toml
контейнер больше не стартует, есть идеи?
permission denied при записи в volume
ipv6 поддерживается?
где посмотреть логи
session cookie не сохраняется, что я упускаю
""",
    "zh": """
怎么清理缓存？
uv cache 目录在哪里
windows 上 pip install 失败怎么办
docker compose up 报 connection refused
配置文件在哪
能不能固定 python 版本
请问有没有深色模式
更新之后 build 一直 timeout
--frozen 是什么意思
flask 找不到 templates
上传文件报 403 错误
如何設定 proxy
謝謝，可以了
怎么在 kubernetes 上 deploy
uv sync 看不到 pyproject.toml
容器启动不了了，有人知道吗
写入 volume 时 permission denied
支持 ipv6 吗
日志在哪看
session cookie 没有保存
""",
    "ja": """
キャッシュを削除するには？
uv cache の場所はどこですか
windows で pip install が失敗します
docker compose up で connection refused が出る
設定ファイルはどこにありますか
python のバージョンを固定できますか
ダークモードはありますか
アップデート後に build が timeout します
--frozen は何をするオプション？
flask が templates を見つけてくれない
ファイルのアップロードで 403 エラー
proxy の設定方法を教えてください
ありがとう、動きました
kubernetes に deploy したいです
環境変数の設定
コンテナが起動しなくなりました
volume への書き込みで permission denied になる
ipv6 に対応していますか
ログはどこで見れますか
session cookie が保存されない
""",
    "it": """
come posso svuotare la cache?
perché pip install non funziona su windows
dove si trova il file di config
flask non trova i miei template
il mio container non parte più, qualche idea?
""",
    "nl": """
hoe kan ik de cache leegmaken?
waarom werkt pip install niet op windows
waar staat het config bestand
flask kan mijn templates niet vinden
mijn container start niet meer op, iemand een idee?
""",
    "pl": """
jak wyczyścić cache?
dlaczego pip install nie działa na windows
gdzie jest plik config
flask nie widzi moich templates
mój kontener nie startuje, jakieś pomysły?
""",
    "tr": """
cache nasıl temizlenir?
windows üzerinde pip install neden çalışmıyor
config dosyası nerede
container artık başlamıyor, fikri olan var mı?
""",
    "sv": """
hur rensar jag cachen?
varför fungerar inte pip install på windows
var ligger config filen
min container startar inte längre, någon som vet?
""",
    "uk": """
як очистити кеш?
чому pip install не працює на windows
контейнер більше не запускається, є ідеї?
""",
    "ko": """
캐시를 어떻게 지우나요?
windows에서 pip install이 실패해요
컨테이너가 시작되지 않아요
""",
    "th": """
จะล้าง cache ยังไงครับ
""",
    "ar": """
كيف أمسح cache الخاص بـ uv
""",
    "el": """
πώς καθαρίζω το cache
""",
    "he": """
איך מנקים את ה cache
""",
}

LABELLED: Final = [
    (language, question) for language, lines in QUESTIONS.items() for question in lines.strip().splitlines()
]
